"""Where is it kept? The host side of the windows: their arena, its growth, and the payload."""
