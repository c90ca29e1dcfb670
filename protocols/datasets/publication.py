"""Facts from the publishers of the datasets: counts, terms and archives.

Sources of the counts: specification, section 1; for SOP's images per part Song et al. 2016, table 1; for iNaturalist
2018 Brown et al. 2020, whose parts add up to the competition's 8,142 categories and 437,513 + 24,426 images. A checksum
is given only if the publisher prints it or several public loaders of the dataset agree on it. Other archives are
checked by the counts of their images.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Counts:
    """The published counts of a dataset.

    Attributes:
        trainval_classes: Number of classes that the conventional split trains on; they are the first ones.
        trainval_images: Number of their images.
        queries: Number of queries of the other classes; None if the publisher does not separate queries and gallery.
        gallery: Number of gallery images of the other classes, likewise.
        is_split_given: Whether every protocol uses this split, as in `Dataset`.
    """

    classes: int
    images: int
    trainval_classes: int
    trainval_images: int
    queries: int | None = None
    gallery: int | None = None
    is_split_given: bool = False


@dataclass(frozen=True)
class Archive:
    """A file of the publisher.

    Attributes:
        name: File name. A file without an archive's suffix is not unpacked.
        url: Address that needs no form; None if there is none.
        md5: MD5 checksum in hexadecimal; None if it is not known.
        size: Size in bytes; None if it is not known.
        folder: Folder below the data folder that the file is unpacked into.
    """

    name: str
    url: str | None = None
    md5: str | None = None
    size: int | None = None
    folder: str = "."


@dataclass(frozen=True)
class Publication:
    """Source and terms of a dataset.

    Attributes:
        place: Layout of the unpacked files.
    """

    publisher: str
    page: str
    terms: str
    place: str
    counts: Counts
    archives: tuple[Archive, ...]

    @property
    def source(self) -> str:
        """Publisher, page, terms, files and layout, one line each."""
        names = ", ".join(archive.name for archive in self.archives)
        return (
            f"publisher: {self.publisher}\npage: {self.page}\nterms: {self.terms}\nfiles: {names}\nlayout: {self.place}"
        )


CUB200 = Publication(
    publisher="Wah, Branson, Welinder, Perona and Belongie (2011), Caltech",
    page="https://data.caltech.edu/records/65de6-vp158",
    terms="non-commercial research and education; the photographers keep their rights in the images",
    place="CUB_200_2011/ with images.txt, classes.txt, image_class_labels.txt and images/",
    counts=Counts(classes=200, images=11_788, trainval_classes=100, trainval_images=5_864),
    archives=(
        Archive(
            "CUB_200_2011.tgz",
            "https://data.caltech.edu/records/65de6-vp158/files/CUB_200_2011.tgz",
            md5="97eceeb196236b17998738112f37df78",
            size=1_150_585_339,
        ),
    ),
)

CARS196 = Publication(
    publisher="Krause, Stark, Deng and Fei-Fei (2013), Stanford",
    page="https://ai.stanford.edu/~jkrause/cars/car_dataset.html (its links are dead; mirrors carry the files)",
    terms="non-commercial research; the images belong to their owners",
    place=(
        "cars_annos.mat beside car_ims/; or cars_train/, cars_test/ and devkit/ with cars_train_annos.mat, "
        "cars_test_annos_withlabels.mat and cars_meta.mat; or train/ and test/ with one folder per class name"
    ),
    counts=Counts(classes=196, images=16_185, trainval_classes=98, trainval_images=8_054),
    archives=(
        Archive("car_ims.tgz", md5="d5c8f0aa497503f355e17dc7886c3f14"),
        Archive("cars_annos.mat", md5="b407c6086d669747186bd1d764ff9dbc"),
    ),
)

SOP = Publication(
    publisher="Oh Song, Xiang, Jegelka and Savarese (2016), Stanford",
    page="https://cvgl.stanford.edu/projects/lifted_struct/",
    terms="research; the images are those of eBay's listings and belong to their owners",
    place="Stanford_Online_Products/ with Ebay_train.txt, Ebay_test.txt and the folders *_final/",
    counts=Counts(classes=22_634, images=120_053, trainval_classes=11_318, trainval_images=59_551),
    archives=(
        Archive(
            "Stanford_Online_Products.zip",
            "http://ftp.cs.stanford.edu/cs/cvgl/Stanford_Online_Products.zip",
            md5="7f73d41a2f44250d4779881525aea32e",
        ),
    ),
)

INSHOP = Publication(
    publisher="Liu, Luo, Qiu, Wang and Tang (2016), The Chinese University of Hong Kong (DeepFashion)",
    page="https://mmlab.ie.cuhk.edu.hk/projects/DeepFashion/InShopRetrieval.html (a Google Drive folder)",
    terms="non-commercial research under the DeepFashion agreement, to be accepted on the page",
    place="Eval/list_eval_partition.txt (or list_eval_partition.txt) and Img/img/ (or img/) with WOMEN/ and MEN/",
    counts=Counts(
        classes=7_982, images=52_712, trainval_classes=3_997, trainval_images=25_882, queries=14_218, gallery=12_612
    ),
    archives=(Archive("img.zip", folder="Img"), Archive("list_eval_partition.txt")),
)

INAT2018 = Publication(
    publisher="Van Horn et al. (2018), iNaturalist and Caltech; the split by Brown et al. (2020), Oxford",
    page=(
        "https://github.com/visipedia/inat_comp/tree/master/2018 (images and annotations) and "
        "https://github.com/Andrew-Brown1/Smooth_AP (its link to the dataset splits)"
    ),
    terms="non-commercial research and education; the images must not be passed on",
    place=(
        "train_val2018/, train2018.json, val2018.json, and Inat_dataset_splits/ with Inaturalist_train_set1.txt and "
        "Inaturalist_test_set1.txt"
    ),
    counts=Counts(classes=8_142, images=461_939, trainval_classes=5_690, trainval_images=325_846, is_split_given=True),
    archives=(
        Archive("Inat_dataset_splits.zip"),
        Archive(
            "train2018.json.tar.gz",
            "https://ml-inat-competition-datasets.s3.amazonaws.com/2018/train2018.json.tar.gz",
            md5="bfa29d89d629cbf04d826a720c0a68b0",
        ),
        Archive(
            "val2018.json.tar.gz",
            "https://ml-inat-competition-datasets.s3.amazonaws.com/2018/val2018.json.tar.gz",
            md5="f2ed8bfe3e9901cdefceb4e53cd3775d",
        ),
        Archive(
            "train_val2018.tar.gz",
            "https://ml-inat-competition-datasets.s3.amazonaws.com/2018/train_val2018.tar.gz",
            md5="b1c6952ce38f31868cc50ea72d066cc3",
        ),
    ),
)
