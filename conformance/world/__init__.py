"""What the rules show to engines: photos, prompts, batches, encoders, and a real but tiny model."""
