"""The offline optimum: choices at given prices, and decisions that fit the memory."""
