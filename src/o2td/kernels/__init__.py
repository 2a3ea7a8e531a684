"""The compiled inner loops: arrays in, arrays out. The main families are `weighted` and `gradient`."""
