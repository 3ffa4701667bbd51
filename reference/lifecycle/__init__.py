"""Lifecycle: what becomes of a request over time.

`turns` joins the next turn of a conversation to what was said before. `requests` holds what requests need while they are
alive, and gives it back.
"""
