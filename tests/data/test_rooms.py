import hashlib
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.spatial import ConvexHull

from unweave.data.sets import rooms
from unweave.data.sets.rooms_continuous import render
from unweave.errors import UnweaveError

ROOMS = rooms.load()
SIZES = (10, 10, 10, 8, 4, 15)
Floats = NDArray[np.float64]
PINNED = ["de2ef28bc38aa658", "664735a0184745dc", "887e2508b100cf3d", "f07cfc13eb2a00dc"]


def varied(name: str, base: tuple[int, ...] = (6, 1, 0, 5, 2, 4)) -> NDArray[np.uint8]:
    """Images in which one factor takes all of its values."""
    j = ROOMS.position(name)
    factors = np.tile(base, (SIZES[j], 1))
    factors[:, j] = np.arange(SIZES[j])
    return ROOMS.observe(factors)


def inside(shape: str, scale: float, point: Floats) -> bool:
    """Whether a point is in the object, from the object's definition."""
    x, y, z = (float(value) / scale for value in point)
    if shape == "cube":
        return max(abs(x), abs(z)) < 0.85 and 0 < y < 1.7
    if shape == "cylinder":
        return math.hypot(x, z) < 0.85 and 0 < y < 1.9
    if shape == "sphere":
        return math.dist((x, y, z), (0, 1, 0)) < 1
    return math.dist((x, y, z), (0, min(max(y, 0.7), 1.8), 0)) < 0.7


def seen_by(azimuth: float, shape: str, scale: float) -> NDArray[np.bool_]:
    """(16, 64, 64): which of a pixel's rays meet the object."""
    eye, rays = rooms.camera_rays(azimuth)
    return np.isfinite(rooms.distance(shape, scale, eye, rays)).reshape(16, 64, 64)


def project(points: Floats, azimuth: float) -> Floats:
    """(n, 3) points in the room -> (n, 2) columns and rows in the picture, by a look-at matrix."""
    angle = math.radians(azimuth)
    eye = np.array([6.6 * math.sin(angle), 3.2, 6.6 * math.cos(angle)])
    ahead = np.array([0, 1.1, 0]) - eye
    ahead /= np.linalg.norm(ahead)
    right = np.cross(ahead, [0, 1, 0])
    right /= np.linalg.norm(right)
    camera = np.stack([right, np.cross(right, ahead), ahead])
    x, y, depth = camera @ (points - eye).T
    return np.stack([32 + 32 * x / depth / 0.4, 32 - 32 * y / depth / 0.4], axis=1)


def circle(height: float, radius: float) -> Floats:
    turn = np.linspace(0, 2 * np.pi, 720, endpoint=False)
    return np.stack([radius * np.cos(turn), np.full_like(turn, height), radius * np.sin(turn)], axis=1)


def outline(shape: str) -> Floats:
    """Points of an object at scale 1, whose hull is the object."""
    if shape == "cube":
        return np.array([(x, y, z) for x in (-0.85, 0.85) for y in (0, 1.7) for z in (-0.85, 0.85)])
    if shape == "cylinder":
        return np.concatenate([circle(0, 0.85), circle(1.9, 0.85)])
    tilt = np.linspace(-np.pi / 2, np.pi / 2, 181)
    return np.concatenate(
        [circle(centre + 0.7 * math.sin(t), 0.7 * math.cos(t)) for t in tilt for centre in (0.7, 1.8)]
    )


def test_it_is_the_grid_that_it_says() -> None:
    assert ROOMS.name == "rooms"
    assert [factor.name for factor in ROOMS.factors] == [
        "floor_hue", "wall_hue", "object_hue", "scale", "shape", "azimuth",
    ]  # fmt: skip
    assert ROOMS.sizes == SIZES
    assert len(ROOMS) == 480_000
    assert [factor.kind for factor in ROOMS.factors] == ["circular"] * 3 + [
        "ordinal",
        "categorical",
        "ordinal",
    ]
    assert ROOMS.source == "rendered by unweave, rooms rule 1"
    assert not ROOMS.stochastic
    assert not ROOMS.binary
    np.testing.assert_allclose(rooms.HUES, np.linspace(0, 0.9, 10))
    np.testing.assert_allclose(rooms.SCALES, np.linspace(0.75, 1.25, 8))
    np.testing.assert_allclose(rooms.AZIMUTHS, np.linspace(-30, 30, 15), atol=1e-12)


def test_images_are_uint8_and_use_the_range() -> None:
    images = ROOMS.observe(ROOMS.sample_factors(200, seed=0))
    assert images.shape == (200, 3, 64, 64)
    assert images.dtype == np.uint8
    assert images.min() < 20
    assert images.max() > 250
    assert ROOMS.observe(np.empty((0, 6), int)).shape == (0, 3, 64, 64)


def test_a_value_outside_the_grid_is_refused() -> None:
    with pytest.raises(UnweaveError, match="azimuth"):
        ROOMS.observe([[0, 0, 0, 0, 0, 15]])


def test_images_do_not_depend_on_the_batch() -> None:
    factors = ROOMS.sample_factors(50, seed=1)
    alone = [ROOMS.observe(factors[i : i + 1]) for i in range(50)]
    np.testing.assert_array_equal(ROOMS.observe(factors), np.concatenate(alone))


def test_pictures_of_rule_1() -> None:
    """Exact on purpose: see the module's docstring. A change here is a new RULE."""
    factors = [[0, 1, 2, 0, 0, 0], [3, 4, 5, 3, 1, 7], [6, 7, 8, 5, 2, 11], [9, 0, 1, 7, 3, 14]]
    digests = [hashlib.sha256(image.tobytes()).hexdigest()[:16] for image in ROOMS.observe(factors)]
    assert digests == PINNED


def test_an_image_is_the_rounded_sum_of_maps_times_colours() -> None:
    factors = ROOMS.sample_factors(300, seed=2)
    shares = rooms.maps()[tuple(factors[:, 3:].T)].astype(np.int64)
    colours = np.concatenate([rooms.palette()[factors[:, :3]], np.full((300, 1, 3), (214, 232, 255))], axis=1)
    total = np.einsum("nmp,nmc->ncp", shares, colours.astype(np.int64))
    expected = (2 * total + rooms.ONE) // (2 * rooms.ONE)  # in whole numbers
    np.testing.assert_array_equal(ROOMS.observe(factors).reshape(300, 3, -1), expected)


def test_no_pixel_holds_more_than_its_share() -> None:
    assert rooms.maps().sum(axis=3, dtype=np.int64).max() <= rooms.ONE


def test_colours_of_the_hues() -> None:
    colours = rooms.palette().astype(int).tolist()
    assert colours[0] == [255, 64, 64]  # red; three quarters saturated: 255 / 4 = 63.75
    assert colours[5] == [64, 255, 255]  # cyan, opposite
    assert colours[1] == [255, 179, 64]  # 36 degrees: green is 255 (1 - 0.75 (1 - 0.6)) = 178.5
    assert len({tuple(colour) for colour in colours}) == 11


@pytest.mark.parametrize("name", [factor.name for factor in rooms.FACTORS])
def test_every_value_of_every_factor_makes_another_picture(name: str) -> None:
    images = varied(name).astype(int)
    for i in range(len(images)):
        for j in range(i):
            # many pixels differ clearly: nothing is hidden in the last bit of a few
            assert (np.abs(images[i] - images[j]).max(axis=0) > 12).sum() > 30, (name, i, j)


@pytest.mark.parametrize("shape", range(4))
def test_a_hue_colours_its_own_part_and_all_of_it(shape: int) -> None:
    scale, azimuth = 4, 12
    eye, rays = rooms.camera_rays(rooms.AZIMUTHS[azimuth])
    on_object = seen_by(rooms.AZIMUTHS[azimuth], rooms.SHAPES[shape], rooms.SCALES[scale])
    ground = eye - rays * (eye[1] / rays[1])
    on_ground = (rays[1] < 0) & (np.abs(ground[0]) < 3.6) & (ground[2] > -3.6)
    on_floor = on_ground.reshape(16, 64, 64) & ~on_object
    rest = ~on_floor & ~on_object  # walls and sky
    for name, own in (("floor_hue", on_floor), ("wall_hue", rest), ("object_hue", on_object)):
        images = varied(name, (2, 5, 8, scale, shape, azimuth)).astype(int)
        changed = (np.ptp(images, axis=0) > 0).any(axis=0)
        assert not changed[~own.any(axis=0)].any()
        if name != "wall_hue":
            assert changed[own.all(axis=0)].mean() > 0.98  # a contact shadow may be black
    sky = np.arange(64) < 6
    assert not (np.ptp(varied("wall_hue"), axis=0) > 0).any(axis=0)[sky].any()


def test_objects_grow_with_scale_and_keep_their_colour_share() -> None:
    for shape in range(4):
        for azimuth in (0, 7, 14):
            share = rooms.maps()[:, shape, azimuth, rooms.OBJECT].sum(axis=1, dtype=np.int64)
            assert (np.diff(share) > 0).all()
            assert share[-1] / share[0] == pytest.approx((1.25 / 0.75) ** 2, rel=0.35)


@pytest.mark.parametrize("shape", rooms.SHAPES)
def test_opposite_azimuths_mirror_each_other(shape: str) -> None:
    """The room and the objects are symmetric; the lamp is not, so shapes are compared, not shades."""
    for azimuth in rooms.AZIMUTHS[:8]:
        here, there = seen_by(azimuth, shape, 1.0), seen_by(-azimuth, shape, 1.0)
        np.testing.assert_array_equal(here.mean(axis=0), there.mean(axis=0)[:, ::-1])


@pytest.mark.parametrize("azimuth", [-30.0, 0.0, 30.0])
@pytest.mark.parametrize("scale", [0.75, 1.25])
def test_area_of_the_sphere_is_that_of_an_ellipse(scale: float, azimuth: float) -> None:
    """A cone of half-angle a, its axis b off the line of sight, cuts the picture in an ellipse.

    Half-axes sin a cos a / (cos^2 b - sin^2 a) and sin a / sqrt(cos^2 b - sin^2 a) focal lengths.
    """
    sine = scale / math.hypot(6.6, 3.2 - scale)
    off_axis = math.atan2(3.2 - scale, 6.6) - math.atan2(3.2 - 1.1, 6.6)
    room_left = math.cos(off_axis) ** 2 - sine**2
    area = math.pi * (sine * math.sqrt(1 - sine**2) / room_left) * (sine / math.sqrt(room_left))
    expected = area * (32 / 0.4) ** 2
    assert seen_by(azimuth, "sphere", scale).mean(axis=0).sum() == pytest.approx(expected, rel=0.005)


@pytest.mark.parametrize("azimuth", [-30.0, 4.0, 17.0])
@pytest.mark.parametrize("scale", [0.75, 1.25])
@pytest.mark.parametrize("shape", ["cube", "cylinder", "capsule"])
def test_area_of_the_others_is_that_of_their_projected_hull(shape: str, scale: float, azimuth: float) -> None:
    expected = ConvexHull(project(scale * outline(shape), azimuth)).volume  # in the plane: the area
    assert seen_by(azimuth, shape, scale).mean(axis=0).sum() == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("azimuth", rooms.AZIMUTHS[::7])
def test_rays_lead_back_to_their_pixels(azimuth: float) -> None:
    eye, rays = rooms.camera_rays(azimuth)
    np.testing.assert_allclose((rays * rays).sum(axis=0), 1)
    columns, rows = project((eye + 5 * rays).T, azimuth).T.reshape(2, 4, 4, 64, 64)
    sub = (np.arange(4) + 0.5) / 4
    np.testing.assert_allclose(rows[:, 0, :, 0], np.arange(64) + sub[:, None], atol=1e-9)
    np.testing.assert_allclose(columns[0, :, 0, :], np.arange(64) + sub[:, None], atol=1e-9)


@pytest.mark.parametrize("azimuth", rooms.AZIMUTHS[::7])
def test_rays_end_on_the_nearest_plane(azimuth: float) -> None:
    eye, rays = rooms.camera_rays(azimuth)
    room = rooms.empty_room(eye, rays)
    planes = [((0, 1, 0), 0.0), ((0, 0, 1), -3.6), ((1, 0, 0), -3.6), ((1, 0, 0), 3.6)]
    for i in range(0, rays.shape[1], 641):
        ray, start = rays[:, i], eye[:, 0]
        lengths = [(offset - np.dot(normal, start)) / np.dot(normal, ray) for normal, offset in planes]
        nearest = min(range(4), key=lambda k: lengths[k] if lengths[k] > 0 else math.inf)
        point = start + lengths[nearest] * ray
        np.testing.assert_allclose(room.points[:, i], point, atol=1e-12)
        above = rooms.LIGHT if point[1] > 3.0 else rooms.WALL
        assert room.surface[i] == (rooms.FLOOR if nearest == 0 else above)


def test_the_corners_of_the_room_are_where_they_should_be() -> None:
    """The left wall is darker than the back wall; the step is at the projected edge between them."""
    for azimuth in (7, 10, 14):
        foot_and_top = np.array([[-3.6, 1.0, -3.6], [-3.6, 2.5, -3.6]])
        (column, row), _ = project(foot_and_top, rooms.AZIMUTHS[azimuth])
        wall = rooms.maps()[0, 3, azimuth, rooms.WALL].reshape(64, 64)[int(row) - 4].astype(int)
        step = np.abs(np.diff(wall))[: int(column) + 4].argmax() + 1
        assert abs(step - column) < 1.5, azimuth


def test_light_on_the_floor() -> None:
    """One ray each, from its formula: lit floor, floor in the sphere's shadow."""
    eye, rays = rooms.camera_rays(0.0)
    shares = rooms._shares(rooms._view_from(0.0), "sphere", 1.0)
    lamp = np.array([-3.5, 7.0, 2.0])
    for target, lit in (((-1.5, 0, 1.0), True), ((0.2, 0, 2.5), True), ((1.1, 0, -0.5), False)):
        aim = (np.array(target)[:, None] - eye) / np.linalg.norm(np.array(target)[:, None] - eye)
        i = int((aim * rays).sum(axis=0).argmax())
        x, y, z = point = eye[:, 0] - rays[:, i] * eye[1] / rays[1, i]
        assert y == pytest.approx(0, abs=1e-12)
        gap = min(3.6 - abs(x), 3.6 + z)
        sky = 0.5 * (0.5 + 0.5 * gap / math.hypot(gap, 1)) * (1 - math.hypot(x, z, 1) ** -3)
        lamp_light = 0.5 * 7.0 / float(np.linalg.norm(lamp - point))
        np.testing.assert_allclose(shares[:, i], [sky + lit * lamp_light, 0, 0, 0], atol=1e-12)


def test_light_on_the_walls() -> None:
    """The back wall faces +z, the left wall +x (the lamp is almost in its plane), the right wall -x."""
    lamp = np.array([-3.5, 7.0, 2.0])
    for azimuth, point in ((-30.0, (3.6, 1.2, -2.6)), (0.0, (1.5, 2.0, -3.6)), (30.0, (-3.6, 1.5, -2.0))):
        x, y, z = point
        away = lamp - point
        if z == -3.6:
            gap, facing = min(3.6 - abs(x), y), away[2]
        else:
            gap, facing = min(3.6 + z, y), -away[0] if x > 0 else away[0]
        expected = 0.5 * (0.5 + 0.5 * gap / math.hypot(gap, 1)) + 0.5 * facing / np.linalg.norm(away)
        eye, _ = rooms.camera_rays(azimuth)
        ray = np.asarray(point)[:, None] - eye
        room = rooms.empty_room(eye, ray / np.linalg.norm(ray))
        assert room.surface[0] == rooms.WALL
        np.testing.assert_allclose(room.sky_light + room.lamp_light, expected, rtol=1e-9)


def test_the_rays_of_a_pixel_ask_all_parts_of_the_lamp() -> None:
    lamps = rooms._lamp_points().reshape(3, 16, 4096)
    assert (lamps == lamps[:, :, :1]).all()
    cells = {(round(x + 3.5, 9), round(y, 9), round(z - 2.0, 9)) for x, y, z in lamps[:, :, 0].T}
    middles = (-0.75, -0.25, 0.25, 0.75)  # of four strips of a side of 2
    assert cells == {(x, 7.0, z) for x in middles for z in middles}


def test_light_on_the_object_and_in_the_sky() -> None:
    eye, rays = rooms.camera_rays(0.0)
    shares = rooms._shares(rooms._view_from(0.0), "sphere", 1.0)
    for i in range(15 * 4096 + 20 * 64, 15 * 4096 + 40 * 64, 29):
        away = rooms.distance("sphere", 1.0, eye, rays[:, i : i + 1])[0]
        if not np.isfinite(away):
            continue
        normal = eye[:, 0] + away * rays[:, i] - [0, 1, 0]
        to_lamp = np.array([-3.5, 7.0, 2.0]) - normal - [0, 1, 0]
        to_lamp /= np.linalg.norm(to_lamp)
        half = (to_lamp - rays[:, i]) / np.linalg.norm(to_lamp - rays[:, i])
        gloss = 0.4 * max(normal @ half, 0) ** 32
        shade = 0.5 * (0.7 + 0.3 * normal[1]) + 0.5 * max(normal @ to_lamp, 0)
        np.testing.assert_allclose(shares[:, i], [0, 0, (1 - gloss) * shade, gloss], atol=1e-9)
    assert (shares[:3, :64] == 0).all()
    np.testing.assert_allclose(shares[rooms.LIGHT, :64], 1 - np.maximum(rays[1, :64], 0))


def test_culled_rays_lose_nothing() -> None:
    """The rays left out as too far from every object are none that meet the largest ones."""
    view = rooms._view_from(-30.0)
    to_lamp = view.lamps - view.room.points
    for shape in rooms.SHAPES:
        seen = np.flatnonzero(np.isfinite(rooms.distance(shape, 1.25, view.eye, view.rays)))
        shaded = np.flatnonzero(np.isfinite(rooms.distance(shape, 1.25, view.room.points, to_lamp)))
        assert np.isin(seen, view.seen).all()
        assert np.isin(shaded, view.shaded).all()
        assert len(seen) > 1000
        assert len(shaded) > 1000


@given(
    shape=st.sampled_from(rooms.SHAPES),
    scale=st.floats(0.75, 1.25),
    start=st.tuples(st.floats(-6, 6), st.floats(3.3, 6), st.floats(2, 6)),
    target=st.tuples(st.floats(-1.5, 1.5), st.floats(0.05, 3), st.floats(-1.5, 1.5)),
)
@settings(deadline=None, max_examples=150)
def test_distance_is_the_first_point_inside(
    shape: str, scale: float, start: tuple[float, float, float], target: tuple[float, float, float]
) -> None:
    origin, ray = np.asarray(start), np.asarray(target) - np.asarray(start)
    ray[np.abs(ray) < 1e-6] = 1e-6
    result = float(rooms.distance(shape, scale, origin[:, None], ray[:, None])[0])
    before = np.linspace(0, min(result, 2.0) * (1 - 1e-6), 400)
    assert not any(inside(shape, scale, origin + t * ray) for t in before)
    if np.isfinite(result):
        normal = rooms.surface_normal(shape, scale, (origin + result * ray)[:, None])[:, 0]
        assert np.linalg.norm(normal) == pytest.approx(1)
        assert normal @ ray <= 1e-6  # it faces whoever looks
        point = origin + result * ray
        assert not inside(shape, scale, point + 1e-5 * normal)
        assert inside(shape, scale, point - 1e-5 * normal + 1e-7 * (np.array([0, 0.5, 0]) - point))


@pytest.mark.parametrize("point", [(0, 3, 9, 0, 0, 0), (7, 1, 4, 5, 3, 11)])
def test_real_valued_factors_of_the_grid_have_its_images(point: tuple[int, ...]) -> None:
    floor, wall, thing, scale, shape, azimuth = point
    values = np.array(
        [
            rooms.HUES[floor],
            rooms.HUES[wall],
            rooms.HUES[thing],
            rooms.SCALES[scale],
            shape,
            rooms.AZIMUTHS[azimuth],
        ]
    )
    assert (render(values) == ROOMS.observe([point])[0]).all()
