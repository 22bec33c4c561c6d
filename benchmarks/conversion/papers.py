"""Where each network of the tables was published."""

from __future__ import annotations

from typing import Final

LARQ_ZOO: Final = {
    "BiRealNet": ("literature", "Bi-Real Net, Liu et al. 2018"),
    "BinaryAlexNet": ("literature", "Binarized Neural Networks, Hubara et al. 2016"),
    "BinaryDenseNet28": ("literature", "BinaryDenseNet, Bethge et al. 2019"),
    "BinaryDenseNet37": ("literature", "BinaryDenseNet, Bethge et al. 2019"),
    "BinaryDenseNet37Dilated": ("literature", "BinaryDenseNet, Bethge et al. 2019"),
    "BinaryDenseNet45": ("literature", "BinaryDenseNet, Bethge et al. 2019"),
    "BinaryResNetE18": ("literature", "BinaryDenseNet, Bethge et al. 2019"),
    "DoReFaNet": ("literature", "DoReFa-Net, Zhou et al. 2016"),
    "MeliusNet22": ("literature", "MeliusNet, Bethge et al. 2020"),
    "RealToBinaryNet": ("literature", "Real-to-Binary, Martinez et al. 2020"),
    "XNORNet": ("literature", "XNOR-Net, Rastegari et al. 2016"),
    "QuickNet": ("sota", "Larq Compute Engine, Bannink et al. 2021"),
    "QuickNetSmall": ("sota", "Larq Compute Engine, Bannink et al. 2021"),
    "QuickNetLarge": ("sota", "Larq Compute Engine, Bannink et al. 2021"),
}
"""Its architectures: the module that each is in, and the paper."""
PAPERS: Final = {name: paper for name, (_, paper) in LARQ_ZOO.items()} | {
    "hubara_vgg_small": "Binarized Neural Networks, Hubara et al. 2016",
    "xnornet_alexnet": "XNOR-Net, Rastegari et al. 2016",
    "birealnet18": "Bi-Real Net, Liu et al. 2018",
    "reactnet_resnet18": "ReActNet, Liu et al. 2020",
    "reactnet_mobilenet": "ReActNet, Liu et al. 2020",
    "irnet_resnet20": "IR-Net, Qin et al. 2020",
    "recu_resnet18": "ReCU, Xu et al. 2021",
    "adabin_resnet20": "AdaBin, Tu et al. 2022",
    "brevitas_cnv_w1a1": "FINN, Umuroglu et al. 2017",
    "brevitas_cnv_w1a2": "FINN, Umuroglu et al. 2017",
    "bitorch_resnet_e18": "BinaryDenseNet, Bethge et al. 2019, in BITorch",
    "binary_googlenet": "GoogLeNet, Szegedy et al. 2015, binarised",
    "mnist_mlp": "Binarized Neural Networks, Hubara et al. 2016",
    "binary_shufflenet": "ShuffleNet, Zhang et al. 2018, binarised",
    "phonebit_vgg16": "PhoneBit, Chen et al. 2020",
    "real_to_binary_resnet18": "Real-to-Binary, Martinez et al. 2020",
    "bnext_like_resnet18": "blocks like those of BNext, Guo et al. 2022",
    "binary_unet": "U-Net, Ronneberger et al. 2015, with Bi-Real blocks",
    "bisrnet": "BiSRNet, Cai et al. 2023",
    "tc_resnet": "TC-ResNet, Choi et al. 2019, binarised",
    "bipointnet": "BiPointNet, Qin et al. 2021",
    "binary_vit": "a transformer like BiViT, He et al. 2023, and BHViT, Gao et al. 2025",
    "brevitas_live_w1a1": "layers of Brevitas",
    "brevitas_live_w1a2": "layers of Brevitas",
    "brevitas_live_w1a4": "layers of Brevitas",
}
TRAINED: Final = {
    "adabin_resnet20": "the authors' and random",
    "bisrnet": "the authors' and random",
}
"""Networks whose tests use trained weights, too; those of ``training/`` are on the results page."""
