"""Mutations of `lifecycle`."""

from tests.mutations import Mutation

MUTATIONS = [
    Mutation(
        "the reply is a part of the history",
        "lifecycle/turns",
        "past = np.concatenate([history.input_ids, reply])",
        "past = history.input_ids",
        "LIFECYCLE-01",
    ),
    Mutation(
        "an item behind the cut goes",
        "lifecycle/turns",
        "    if item.spans[0].first >= kept:\n        return False\n",
        "",
        "LIFECYCLE-06",
    ),
    Mutation(
        "a turn that is stripped counts from one position later",
        "lifecycle/turns",
        "turn = turn[:, 1:] - 1",
        "turn = turn[:, 1:]",
        "LIFECYCLE-14",
    ),
    Mutation(
        "a reply has modalities, all of them text",
        "lifecycle/turns",
        "np.zeros(length - len(known), dtype=np.int8)",
        "np.zeros(0, dtype=np.int8)",
        "LIFECYCLE-15",
    ),
    Mutation(
        "padded ids of another length are none of this turn",
        "lifecycle/turns",
        "made is not None and len(made) == len(turn_ids)",
        "made is not None",
        "LIFECYCLE-17",
    ),
    Mutation(
        "a retraction takes back what was computed",
        "lifecycle/requests",
        "self._life(id).computed = None",
        "self._life(id)",
        "LIFECYCLE-20",
    ),
    Mutation(
        "content stays while another needs it",
        "lifecycle/requests",
        "            if not self._owners[medium]:\n",
        "            if True:\n",
        "LIFECYCLE-24",
    ),
    Mutation(
        "a session keeps the content of its last turn",
        "lifecycle/requests",
        'self._own(("session", life.session), life.media)',
        "pass",
        "LIFECYCLE-25",
    ),
    Mutation("an abort gives back", "lifecycle/requests", '        self._own(("request", id), ())\n', "", "LIFECYCLE-29"),
    Mutation(
        "a turn that outlives its session leaves it nothing",
        "lifecycle/requests",
        "                life.session = None\n",
        "                pass\n",
        "LIFECYCLE-29",
    ),
    Mutation("who fails is aborted", "lifecycle/requests", "            self.abort(request.id)\n", "", "LIFECYCLE-32"),
    Mutation(
        "content leaves the device when it was read",
        "lifecycle/requests",
        "            self._device.release()\n",
        "            pass\n",
        "LIFECYCLE-33",
    ),
]
