"""Where is it kept? Arena, ring, indexes and payload of the windows."""
