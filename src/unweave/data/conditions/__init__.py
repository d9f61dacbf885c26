"""Names of data with conditions: `dsprites:hold(shape=2,x>=16)`, `rooms:scale~azimuth=0.2`.

`cursor` reads text, `parser` has the grammar, `condition` the canonical form, `presets` the splits of the
literature, and `naming` applies a condition to a ground truth or to an entry of the catalogue.
"""
