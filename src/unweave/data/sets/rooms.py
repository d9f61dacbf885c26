"""Rooms: one object in a coloured room, a 3-D ground truth in colour that needs no file.

The factors and their sizes are those of Shapes3D (Burgess and Kim, 2018); scene and pictures are our own.

Only scale, shape and azimuth move anything: 480 geometries. Each is ray-cast once, into four maps that say
how much of the floor's, the wall's and the object's colour and of plain light a pixel holds; an image is
the sum of four products map x colour. The rays use nothing but elementwise + - * / and square roots in
float64, which IEEE 754 rounds in one way only, and sums over rays and maps are exact: the images are
the same, bit for bit, on every machine.

x points right, y up, z towards the camera at azimuth 0; the unit is the sphere's radius at scale 1.
"""

from __future__ import annotations

import colorsys
import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unweave.compilation import compiled
from unweave.data.entry import Entry
from unweave.data.grid import Card, Factor, Factors, GroundTruth, Images
from unweave.data.sets.rays import Numbers, Vectors, ball, both, dot, entry, meets, slab, tube, unit
from unweave.progress import Progress
from unweave.streams import Stream

NAME = "rooms"
# The version of the pictures: it goes up with any change to any pixel, and the changelog says so.
RULE = 1

SIZE = 64
HUES = tuple(k / 10 for k in range(10))
SCALES = tuple(0.75 + 0.5 * k / 7 for k in range(8))
SHAPES = ("cube", "cylinder", "sphere", "capsule")
AZIMUTHS = tuple(-30 + 60 * k / 14 for k in range(15))

FACTORS = (
    Factor("floor_hue", len(HUES), "circular"),
    Factor("wall_hue", len(HUES), "circular"),
    Factor("object_hue", len(HUES), "circular"),
    Factor("scale", len(SCALES)),
    Factor("shape", len(SHAPES), "categorical", SHAPES),
    Factor("azimuth", len(AZIMUTHS)),
)

CARD = Card(
    title="Rooms: one object in a coloured room",
    licence="CC0-1.0 (images), Apache-2.0 (the code that renders them)",
    citation=(
        "@software{unweave,\n"
        "  author = {{The unweave authors}},\n"
        "  title  = {unweave: learn, measure and compare disentangled representations},\n"
        f"  note   = {{Data set rooms, rule {RULE}}},\n"
        "}"
    ),
    note="The factors and sizes of Shapes3D in a scene of its own; scores on the two are not comparable.",
)

# Half-width and height at scale 1; every object stands on the floor in the middle of the room.
HALF_WIDTH = {"cube": 0.85, "cylinder": 0.85, "sphere": 1.0, "capsule": 0.7}
HEIGHT = {"cube": 1.7, "cylinder": 1.9, "sphere": 2.0, "capsule": 2.5}

ROOM = 3.6  # the walls stand at x = -ROOM, x = ROOM and z = -ROOM; the room is open towards the camera
WALL_TOP = 3.0
CAMERA_DISTANCE, CAMERA_HEIGHT, TARGET_HEIGHT = 6.6, 3.2, 1.1
HALF_VIEW = 0.4  # tangent of half the angle of view
LAMP, LAMP_SIDE = (-3.5, 7.0, 2.0), 2.0  # a square lamp that faces down
SKY_LIGHT, LAMP_LIGHT, GLOSS = 0.5, 0.5, 0.4

SATURATION, LIGHT_COLOUR = 0.75, (214, 232, 255)
SUB = 4  # rays a pixel: SUB x SUB
ONE = 1 << 15  # the whole number that stands for a share of 1 in a map
FLOOR, WALL, OBJECT, LIGHT = range(4)  # the maps; the light is the sky, and its reflection in the object


def load(
    root: Path | None = None,  # noqa: ARG001  no file is needed
    *,
    check: bool = True,  # noqa: ARG001
    progress: Progress | None = None,  # noqa: ARG001
) -> GroundTruth:
    """The 480,000 images, rendered on demand; the first image waits for the maps."""
    return GroundTruth(
        name=NAME,
        factors=FACTORS,
        shape=(3, SIZE, SIZE),
        render=_render,
        card=CARD,
        source=f"rendered by unweave, rooms rule {RULE}",
    )


ENTRY = Entry(NAME, FACTORS, 3, CARD, load)


def _render(factors: Factors, _stream: Stream) -> Images:
    images = np.empty((len(factors), 3, SIZE * SIZE), np.uint8)
    light = np.full((len(factors), 1), len(HUES))  # the last row of the palette
    colours = palette()[np.hstack([factors[:, :3], light])] / np.float32(ONE)
    _mix(np.ascontiguousarray(factors[:, 3:]), maps(), colours, images)
    return images.reshape(-1, 3, SIZE, SIZE)


@cache
def palette() -> NDArray[np.float32]:
    """(11, 3) red, green and blue, 0 to 255, of the ten hues and of the light."""
    hues = [colorsys.hsv_to_rgb(hue, SATURATION, 1.0) for hue in HUES]
    levels = [[round(255 * channel) for channel in hue] for hue in hues]
    return np.asarray([*levels, LIGHT_COLOUR], np.float32)


@compiled()
def _mix(geometries, maps, colours, images):  # type: ignore[no-untyped-def]
    """images[i, c, p] = sum over the maps m of share[m, p] * colour[i, m, c], rounded.

    All terms are multiples of 1 / ONE below 256, 23 bits, so float32 adds them without any rounding.
    """
    half = np.float32(0.5)
    for i in range(len(geometries)):
        share = maps[geometries[i, 0], geometries[i, 1], geometries[i, 2]]
        for c in range(3):
            floor, wall, thing, light = colours[i, 0, c], colours[i, 1, c], colours[i, 2, c], colours[i, 3, c]
            for p in range(share.shape[1]):
                total = half + np.float32(share[0, p]) * floor + np.float32(share[1, p]) * wall
                total += np.float32(share[2, p]) * thing + np.float32(share[3, p]) * light
                images[i, c, p] = np.uint8(np.int32(total))


@cache
def maps() -> NDArray[np.uint16]:
    """(8 scales, 4 shapes, 15 azimuths, 4 maps, 64 * 64 pixels) shares, ONE standing for 1."""
    table = np.empty((len(SCALES), len(SHAPES), len(AZIMUTHS), 4, SIZE * SIZE), np.uint16)
    for k, azimuth in enumerate(AZIMUTHS):
        view = _view_from(azimuth)
        for i, scale in enumerate(SCALES):
            for j, shape in enumerate(SHAPES):
                table[i, j, k] = _pixel_shares(view, shape, scale)
    table.flags.writeable = False
    return table


def geometry_maps(azimuth: float, shape: str, scale: float) -> NDArray[np.int32]:
    """(4 maps, 64 * 64 pixels) shares of one geometry, ONE standing for 1."""
    return _pixel_shares(_view_from(azimuth), shape, scale)


def _pixel_shares(view: _View, shape: str, scale: float) -> NDArray[np.int32]:
    """(4 maps, 64 * 64 pixels) shares: means over the rays of each pixel, ONE standing for 1."""
    whole = np.rint(_shares(view, shape, scale) * ONE).astype(np.int32)
    return np.asarray(whole.reshape(4, SUB * SUB, -1).sum(axis=1) // (SUB * SUB), np.int32)


@dataclass(frozen=True, eq=False)
class _View:
    """All that the 32 objects seen from one azimuth share; (3, n) vectors, a column for each ray."""

    eye: Vectors
    rays: Vectors
    room: EmptyRoom
    lamps: Vectors
    seen: NDArray[np.int64]  # rays that may meet an object
    shaded: NDArray[np.int64]  # rays that end where the lamp may be hidden


def _view_from(azimuth: float) -> _View:
    eye, rays = camera_rays(azimuth)
    room, lamps = empty_room(eye, rays), _lamp_points()
    # What misses a ball around the largest object misses all of them.
    middle, width = max(SCALES) * max(HEIGHT.values()) / 2, max(SCALES) * max(HALF_WIDTH.values())
    reach = math.sqrt(middle * middle + 2 * width * width)
    seen = np.flatnonzero(meets(ball(eye, rays, middle, reach)))
    shaded = np.flatnonzero(meets(ball(room.points, lamps - room.points, middle, reach)))
    return _View(eye, rays, room, lamps, seen, shaded)


def _shares(view: _View, shape: str, scale: float) -> Numbers:
    """(4 maps, n rays) shares."""
    room, start = view.room, view.room.points[:, view.shaded]
    to_lamp = view.lamps[:, view.shaded] - start
    lamp_light = room.lamp_light.copy()
    lamp_light[view.shaded[np.isfinite(distance(shape, scale, start, to_lamp))]] = 0
    blocked = np.where(room.surface == FLOOR, _blocked_sky(shape, scale, room.points), 0)
    shade = room.sky_light * (1 - blocked) + lamp_light
    shares = np.stack([np.where(room.surface == surface, shade, 0) for surface in range(4)])

    away = distance(shape, scale, view.eye, view.rays[:, view.seen])
    hit = np.isfinite(away)
    rays = view.seen[hit]
    shares[:, rays] = _object_shares(shape, scale, view.eye, view.rays[:, rays], away[hit])
    return shares


def camera_rays(azimuth: float) -> tuple[Vectors, Vectors]:
    """The eye, (3, 1), and unit vectors along the rays, (3, SUB * SUB * SIZE * SIZE), pixels fastest.

    The camera stands `azimuth` degrees to the right of the room's middle axis and looks at the object.
    """
    # Rounded, because the C libraries of this world do not agree on the last bit of a sine.
    sine, cosine = (round(f(math.radians(azimuth)), 12) for f in (math.sin, math.cos))
    eye = np.asarray([[CAMERA_DISTANCE * sine], [CAMERA_HEIGHT], [CAMERA_DISTANCE * cosine]])
    drop = TARGET_HEIGHT - CAMERA_HEIGHT
    length = math.sqrt(CAMERA_DISTANCE * CAMERA_DISTANCE + drop * drop)
    level, down = CAMERA_DISTANCE / length, drop / length
    ahead = (-level * sine, down, -level * cosine)
    right = (cosine, 0.0, -sine)
    up = (down * sine, level, down * cosine)

    sub = (np.arange(SUB) + 0.5) / SUB
    pixel = np.arange(SIZE)
    row, column, y, x = np.meshgrid(sub, sub, pixel, pixel, indexing="ij")
    across = ((x + column) / (SIZE / 2) - 1).ravel() * HALF_VIEW
    upward = (1 - (y + row) / (SIZE / 2)).ravel() * HALF_VIEW
    return eye, unit(np.stack([ahead[i] + across * right[i] + upward * up[i] for i in range(3)]))


def _lamp_points() -> Vectors:
    """For each ray, in the order of `camera_rays`, the point of the lamp that it asks for light."""
    row, column = (index.ravel() for index in np.indices((SUB, SUB)))
    # Mixed, so that the rays at one side of a pixel do not all ask the same side of the lamp.
    across, along = (row + column) % SUB, (row + 2 * column) % SUB
    offsets = [((index + 0.5) / SUB - 0.5) * LAMP_SIDE for index in (across, along)]
    x, z = (np.repeat(offset, SIZE * SIZE) for offset in offsets)
    return np.stack([LAMP[0] + x, np.full_like(x, LAMP[1]), LAMP[2] + z])


@dataclass(frozen=True, eq=False)
class EmptyRoom:
    """What the rays meet in the room without an object: (3, n) points, and (n,) of each of the others."""

    points: Vectors
    surface: NDArray[np.int64]
    sky_light: Numbers
    lamp_light: Numbers


def empty_room(eye: Vectors, rays: Vectors) -> EmptyRoom:
    """Follow the rays to the floor, the back wall or a side wall, or over the top of the walls."""
    to_floor = np.where(rays[1] < 0, -eye[1] / rays[1], np.inf)
    to_back = (-ROOM - eye[2]) / rays[2]
    to_side = (np.copysign(ROOM, rays[0]) - eye[0]) / rays[0]
    to_wall = np.minimum(to_back, to_side)
    points = eye + np.minimum(to_floor, to_wall) * rays
    on_floor, on_back = to_floor < to_wall, to_back < to_side
    beyond = ~on_floor & (points[1] > WALL_TOP)

    # Creases are darker: d away from a tall wall, a share d / sqrt(d^2 + 1) of the other half sky is left.
    x_gap, z_gap = ROOM - np.abs(points[0]), ROOM + points[2]
    gap = np.where(on_floor, np.minimum(x_gap, z_gap), np.minimum(np.where(on_back, x_gap, z_gap), points[1]))
    sky_light = SKY_LIGHT * (0.5 + 0.5 * gap / np.sqrt(gap * gap + 1))
    to_lamp = unit(np.asarray(LAMP)[:, None] - points)
    facing = np.where(on_floor, to_lamp[1], np.where(on_back, to_lamp[2], -np.sign(points[0]) * to_lamp[0]))
    return EmptyRoom(
        points=points,
        surface=np.where(on_floor, FLOOR, np.where(beyond, LIGHT, WALL)),
        sky_light=np.where(beyond, 1 - np.maximum(rays[1], 0), sky_light),
        lamp_light=np.where(beyond, 0, LAMP_LIGHT * np.maximum(facing, 0)),
    )


def _blocked_sky(shape: str, scale: float, points: Vectors) -> Numbers:
    """The share of its sky that a point of the floor loses to a ball of the object's half-width r.

    At d from the ball's centre: (r / d) (r / d)^2, the cosine of the direction times the ball's share.
    """
    radius = scale * HALF_WIDTH[shape]
    ratio = radius / np.sqrt(points[0] * points[0] + points[2] * points[2] + radius * radius)
    return np.asarray(ratio * ratio * ratio)


def _object_shares(shape: str, scale: float, eye: Vectors, rays: Vectors, away: Numbers) -> Numbers:
    """(4 maps, n) shares of rays that meet the object at the given distances."""
    points = eye + away * rays
    normal = surface_normal(shape, scale, points)
    to_lamp = unit(np.asarray(LAMP)[:, None] - points)
    shade = SKY_LIGHT * (0.7 + 0.3 * normal[1]) + LAMP_LIGHT * np.maximum(dot(normal, to_lamp), 0)
    mirror = np.maximum(dot(normal, unit(to_lamp - rays)), 0)
    for _ in range(5):  # to the power 32
        mirror = mirror * mirror
    shares = np.zeros((4, len(away)))
    shares[OBJECT], shares[LIGHT] = (1 - GLOSS * mirror) * shade, GLOSS * mirror
    return shares


def distance(shape: str, scale: float, start: Vectors, rays: Vectors) -> Numbers:
    """How far along the rays, in lengths of the ray, the object begins; infinity where it is missed."""
    width, height = scale * HALF_WIDTH[shape], scale * HEIGHT[shape]
    if shape == "sphere":
        return entry(ball(start, rays, width, width))
    if shape == "capsule":
        top = height - width
        between = both(tube(start, rays, width), slab(start[1], rays[1], width, top))
        balls = [entry(ball(start, rays, centre, width)) for centre in (width, top)]
        return np.minimum(entry(between), np.minimum(*balls))
    layer = slab(start[1], rays[1], 0.0, height)
    if shape == "cylinder":
        return entry(both(tube(start, rays, width), layer))
    sides = both(slab(start[0], rays[0], -width, width), slab(start[2], rays[2], -width, width))
    return entry(both(sides, layer))


def surface_normal(shape: str, scale: float, points: Vectors) -> Vectors:
    """Unit vectors out of the object at points of its surface (without its hidden underside)."""
    width, height = scale * HALF_WIDTH[shape], scale * HEIGHT[shape]
    x, y, z = points
    if shape in ("sphere", "capsule"):
        return np.stack([x, y - np.clip(y, width, height - width), z]) / width
    on_top = y > height - 1e-9
    if shape == "cylinder":
        return np.where(on_top, [[0.0], [1.0], [0.0]], np.stack([x, np.zeros_like(y), z]) / width)
    on_x = ~on_top & (np.abs(x) > np.abs(z))
    on_z = ~on_top & ~on_x
    return np.stack([on_x * np.sign(x), on_top * 1.0, on_z * np.sign(z)])
