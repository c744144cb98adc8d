import numpy as np
import pytest
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from ltenet.data.pairs import benchmark_pair
from ltenet.data.readers import open_set
from ltenet.data.shapeset import GroundTruth, ShapeSet, identity_truth
from ltenet.errors import InputError, MissingError, UsageError
from ltenet.shape import Shape


def grid_faces(rows, columns):
    """Triangles of a grid of rows x columns vertices."""
    corner = (np.arange(rows - 1)[:, None] * columns + np.arange(columns - 1)).reshape(-1)
    return np.concatenate(
        [
            np.stack([corner, corner + 1, corner + columns], 1),
            np.stack([corner + 1, corner + columns + 1, corner + columns], 1),
        ]
    )


class Sheets(ShapeSet):
    """A flat sheet and curved ones with the same vertices; z = bend * x^2."""

    name = "sheets"
    names = ("flat", "bent", "cloud")
    categories = ("sheet", "sheet", "sheet")
    pairs = np.array([[0, 1], [1, 0], [0, 2], [2, 1]])
    bends = (0.0, 0.8, 0.4)

    def __init__(self, known=None, surface=True):
        self.known = known
        self.has_surface = surface

    def flat(self):
        y, x = np.mgrid[0:1:20j, -1:1:40j]
        return np.stack([x, y, np.zeros_like(x)], -1).reshape(-1, 3)

    def bent(self, points, index):
        return np.stack([points[:, 0], points[:, 1], self.bends[index] * points[:, 0] ** 2], 1)

    def shape(self, index):
        faces = None if index == 2 else grid_faces(20, 40)
        return Shape(self.bent(self.flat(), index), faces=faces, name=self.names[index])

    def truth(self, source, target):
        if self.known is None:
            return identity_truth(800)
        return GroundTruth(self.known, self.known) if len(self.known) else None

    def surface(self, index):
        points = np.random.default_rng(0).uniform([-1, 0, 0], [1, 1, 0], (300, 3))
        return self.bent(points, index) if index == 2 and self.has_surface else None


def same(one, two):
    return all(np.array_equal(getattr(one, k), getattr(two, k)) for k in one.__dataclass_fields__)


def test_shared_pairs_are_shuffled_bijections():
    sheets = Sheets()
    pair = benchmark_pair(sheets, 0, points=256)
    np.testing.assert_array_equal(np.sort(pair.partner), np.arange(256))
    assert (pair.partner == np.arange(256)).mean() < 0.05
    np.testing.assert_array_equal(pair.target[pair.partner], pair.truth)
    np.testing.assert_array_equal(pair.truth, sheets.bent(pair.source, 1))
    np.testing.assert_array_equal(pair.target_vertices[pair.partner], pair.source_vertices)
    np.testing.assert_array_equal(pair.source, sheets.shape(0).points[pair.source_vertices])
    np.testing.assert_array_equal(pair.target, sheets.shape(1).points[pair.target_vertices])
    assert len(np.unique(pair.source_vertices)) == 256
    assert (pair.source_name, pair.target_name, pair.category) == ("flat", "bent", "sheet")
    assert pair.source_faces is None


@pytest.mark.parametrize("sampling", ["shared", "independent"])
def test_only_vertices_with_a_known_partner_are_sources(sampling):
    known = np.arange(100, 400)
    pair = benchmark_pair(Sheets(known), 0, sampling=sampling, points=200)
    assert np.isin(pair.source_vertices, known).all()
    with pytest.raises(InputError, match=r"got 300 vertices for 301"):
        benchmark_pair(Sheets(known), 0, sampling=sampling, points=301)


def test_independent_vertices():
    sheets = Sheets()
    pair = benchmark_pair(sheets, 0, sampling="independent", points=300)
    np.testing.assert_array_equal(pair.truth, sheets.shape(1).points[pair.source_vertices])
    drawn = pair.partner >= 0
    np.testing.assert_array_equal(drawn, np.isin(pair.source_vertices, pair.target_vertices))
    np.testing.assert_array_equal(pair.target[pair.partner[drawn]], pair.truth[drawn])
    assert drawn.mean() == pytest.approx(300 / 800, abs=0.1)  # nothing but chance is shared


def test_coincident_vertices_of_the_target_count_once():
    class Doubled(Sheets):
        def shape(self, index):
            points = super().shape(index).points.copy()
            points[400:] = points[:400]
            return Shape(points)

        def truth(self, source, target):
            return identity_truth(800)

    pair = benchmark_pair(Doubled(), 0, sampling="independent", points=400)
    assert len(np.unique(pair.target, axis=0)) == 400
    assert pair.target_vertices.max() < 400
    np.testing.assert_array_equal(pair.target[pair.partner], pair.truth)
    with pytest.raises(InputError, match="got 400 vertices for 401"):
        benchmark_pair(Doubled(), 0, sampling="independent", points=401)


def test_independent_areas_on_one_triangulation():
    sheets = Sheets()
    pair = benchmark_pair(sheets, 0, sampling="independent", by="area", points=2000)
    assert (pair.partner == -1).all()
    assert (pair.source_vertices == -1).all()
    assert (pair.target_vertices == -1).all()
    # The truth has the same x and y as the source and lies on the chords of the bent sheet.
    np.testing.assert_allclose(pair.truth[:, :2], pair.source[:, :2], atol=1e-12)
    chord = np.interp(pair.truth[:, 0], sheets.flat()[:40, 0], sheets.shape(1).points[:40, 2])
    np.testing.assert_allclose(pair.truth[:, 2], chord, atol=1e-12)
    # By area: the flat sheet is covered evenly, the bent one more where it is steep.
    assert np.abs(pair.source[:, 0]).mean() == pytest.approx(0.5, abs=0.03)
    steep = np.sqrt(1 + (1.6 * np.linspace(0, 1, 1000)) ** 2)
    expected = np.average(np.linspace(0, 1, 1000), weights=steep)
    assert np.abs(pair.target[:, 0]).mean() == pytest.approx(expected, abs=0.03)


def test_area_samples_keep_to_faces_with_known_corners():
    known = np.arange(200)  # the first five rows of vertices: y up to 4 / 19
    pair = benchmark_pair(Sheets(known), 0, sampling="independent", by="area", points=500)
    assert 3.5 / 19 < pair.source[:, 1].max() <= 4 / 19
    assert pair.target[:, 1].max() > 0.9


def test_areas_without_faces():
    sheets = Sheets()
    to_cloud = benchmark_pair(sheets, 2, sampling="independent", by="area", points=300)
    np.testing.assert_array_equal(
        np.sort(to_cloud.target, axis=0), np.sort(sheets.surface(2), axis=0)
    )
    np.testing.assert_array_equal(to_cloud.truth, sheets.shape(2).points[to_cloud.source_vertices])
    from_cloud = benchmark_pair(sheets, 3, sampling="independent", by="area", points=300)
    assert (from_cloud.source_vertices >= 0).all()
    assert (from_cloud.target_vertices == -1).all()
    with pytest.raises(
        InputError, match=r"cloud: got a cloud without faces .*, expected one of .*; try by=.v"
    ):
        benchmark_pair(Sheets(surface=False), 2, sampling="independent", by="area", points=9)


def test_full_pairs_hold_every_vertex():
    sheets = Sheets(known=np.arange(10, 700))
    pair = benchmark_pair(sheets, 0, sampling="full")
    source, target = sheets.shape(0), sheets.shape(1)
    np.testing.assert_array_equal(pair.source, source.points)
    np.testing.assert_array_equal(pair.target, target.points[pair.target_vertices])
    assert not np.array_equal(pair.target, target.points)
    known = pair.partner >= 0
    np.testing.assert_array_equal(np.flatnonzero(known), sheets.known)
    assert np.isnan(pair.truth[~known]).all()
    np.testing.assert_array_equal(pair.truth[known], pair.target[pair.partner[known]])
    np.testing.assert_array_equal(pair.truth[known], target.points[10:700])
    np.testing.assert_array_equal(pair.source_faces, source.faces)
    np.testing.assert_array_equal(pair.target[pair.target_faces], target.points[target.faces])
    assert benchmark_pair(sheets, 2, sampling="full").target_faces is None


@pytest.mark.parametrize("sampling", ["shared", "independent", "full"])
def test_pairs_depend_on_seed_and_index_alone(sampling):
    def draw(pair, seed):
        return benchmark_pair(Sheets(), pair, sampling=sampling, points=50, seed=seed)

    assert same(draw(1, 7), draw(1, 7))
    assert not np.array_equal(draw(1, 7).target, draw(1, 8).target)
    assert not np.array_equal(draw(0, 7).target_vertices, draw(1, 7).target_vertices)


@pytest.mark.parametrize("by", ["vertex", "area"])
@pytest.mark.parametrize("rotate", ["yaw", "any"])
def test_rotation_and_noise_leave_the_points_alone(by, rotate):
    options = {"sampling": "independent", "by": by, "points": 200}
    plain = benchmark_pair(Sheets(), 0, **options)
    noisy = benchmark_pair(Sheets(), 0, noise=0.01, **options)
    turned = benchmark_pair(Sheets(), 0, rotate=rotate, **options)
    both = benchmark_pair(Sheets(), 0, rotate=rotate, noise=0.01, **options)
    assert (noisy.source - plain.source).std() == pytest.approx(0.01, rel=0.1)
    np.testing.assert_array_equal(noisy.target, plain.target)
    np.testing.assert_array_equal(noisy.truth, plain.truth)
    np.testing.assert_allclose(both.source - turned.source, noisy.source - plain.source, atol=1e-12)
    np.testing.assert_array_equal(both.target, turned.target)
    # Distances inside a shape, and from the truth to the target, survive the turn.
    np.testing.assert_allclose(cdist(*[turned.source] * 2), cdist(*[plain.source] * 2), atol=1e-9)
    np.testing.assert_allclose(
        cdist(turned.truth, turned.target), cdist(plain.truth, plain.target), atol=1e-9
    )
    np.testing.assert_array_equal(turned.partner, plain.partner)
    assert np.abs(turned.source - plain.source).max() > 0.01
    assert turned.diameter == pytest.approx(plain.diameter)
    np.testing.assert_allclose(turned.target.mean(axis=0), plain.target.mean(axis=0))
    if rotate == "yaw":
        np.testing.assert_allclose(turned.source[:, 1], plain.source[:, 1], atol=1e-12)


def test_the_diameter_is_that_of_the_drawn_target_points():
    pair = benchmark_pair(Sheets(), 0, points=100)
    assert pair.diameter == pytest.approx(cdist(pair.target, pair.target).max(), rel=1e-12)
    flat = benchmark_pair(Sheets(), 1, points=100)  # no hull with a volume
    assert flat.diameter == pytest.approx(cdist(flat.target, flat.target).max(), rel=1e-12)


def test_pairs_without_truth():
    with pytest.raises(
        MissingError, match=r"sheets: got no corr.* flat and bent, expected a pair with.*; try"
    ):
        benchmark_pair(Sheets(known=np.arange(0)), 0)


@pytest.mark.parametrize("index", [-1, 4])
def test_pairs_that_do_not_exist(index):
    with pytest.raises(InputError, match=rf"pair {index}, expected 0 to 3; try counting the rows"):
        benchmark_pair(Sheets(), index)


@pytest.mark.parametrize("option", ["sampling", "by", "rotate"])
def test_choices_that_do_not_exist(option):
    with pytest.raises(UsageError, match=rf"{option}='other', expected one of .*; try"):
        benchmark_pair(Sheets(), 0, **{option: "other"})


@pytest.mark.parametrize("sampling", ["shared", "full"])
def test_areas_need_independent_samples(sampling):
    with pytest.raises(UsageError, match=r"with by='area', expected .*; try by='vertex'"):
        benchmark_pair(Sheets(), 0, sampling=sampling, by="area")


@pytest.mark.parametrize("name", ["faust", "tosca", "shrec19"])
def test_real_shared_pairs_are_bijections(benchmark_data, name):
    shapes = open_set(name, benchmark_data)
    for index in (0, len(shapes.pairs) // 2):
        pair = benchmark_pair(shapes, index)
        np.testing.assert_array_equal(np.sort(pair.partner), np.arange(1024))
        np.testing.assert_array_equal(pair.target[pair.partner], pair.truth)
        assert len(np.unique(pair.target, axis=0)) == 1024
        assert pair.diameter == pytest.approx(cdist(pair.target, pair.target).max())


@pytest.mark.parametrize("by", ["vertex", "area"])
@pytest.mark.parametrize("name", ["faust", "tosca", "shrec19"])
def test_real_independent_truth_is_on_the_target(benchmark_data, name, by):
    pair = benchmark_pair(open_set(name, benchmark_data), 3, sampling="independent", by=by)
    distance = cKDTree(pair.target).query(pair.truth)[0] / pair.diameter
    assert 0.005 < distance.mean() < 0.02
    assert (distance < 0.05).mean() > 0.99


def test_the_oracle_of_independent_vertices_on_faust(benchmark_data):
    # Known figures: the nearest drawn point is 0.92 % of the diameter away, 60.8 % are within 1 %.
    shapes = open_set("faust", benchmark_data)
    distances = []
    for index in range(0, len(shapes.pairs), 40):
        pair = benchmark_pair(shapes, index, sampling="independent")
        distances.append(cKDTree(pair.target).query(pair.truth)[0] / pair.diameter)
    assert 100 * np.mean(distances) == pytest.approx(0.92, abs=0.06)
    assert 100 * np.mean(np.stack(distances) <= 0.01) == pytest.approx(60.8, abs=3)
