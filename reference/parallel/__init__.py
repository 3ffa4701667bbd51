"""Many ranks: where each process runs (`launching`), how ranks speak (`collectives`) and agree on requests (`ranks`), who
encodes what (`encoder_ranks`), and where a request goes (`routing`)."""
