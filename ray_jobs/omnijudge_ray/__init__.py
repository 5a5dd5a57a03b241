"""Ray actors and job entry points that run omnijudge judge engines."""
