"""The join on Spark while its processes are killed: exact all the same. Run it: `make kills`."""
