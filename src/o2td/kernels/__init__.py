"""The compiled inner loops: arrays in, arrays out. Two families, `weighted` and `gradient`."""
