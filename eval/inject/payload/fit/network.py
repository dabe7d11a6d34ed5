from torch import nn


def build_model(cfg):
    width, depth = cfg["width"], cfg["depth"]
    layers = [nn.Linear(cfg["features"], width), nn.ReLU()]
    for _ in range(depth):
        layers += [nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(width, cfg["classes"]))
