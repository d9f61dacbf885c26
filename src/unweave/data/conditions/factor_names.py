"""Names of the factors of the data sets for which the literature defines splits and correlations.

They are written as data, so that a condition is read without loading a data set. Rooms has the factors of
Shapes3D.
"""

SPRITES = ("shape", "scale", "orientation", "x", "y")
SHAPES = ("floor_hue", "wall_hue", "object_hue", "scale", "shape", "azimuth")
CARS = ("elevation", "azimuth", "object")
MPI = (
    "object_colour",
    "object_shape",
    "object_size",
    "camera_height",
    "background_colour",
    "horizontal_axis",
    "vertical_axis",
)
