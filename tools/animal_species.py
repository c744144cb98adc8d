"""The species of every template, as scaled bones: what turns a dog into a cat, a horse or a cow.

A species gives its size, the pitches of its rest pose in degrees (positive lifts head or tail, or
swings a leg forwards), and (length, thickness, lateral thickness relative to thickness) per bone or
per group of bones; where a bone and its group are both given, they multiply.
"""

from __future__ import annotations

from animal_shaping import Species, define_species

# fmt: off
CAPSULE: dict[str, Species] = {
    "cat": define_species(
        0.52, {"neck0": -4, "head": 4, "tail0": 42, "tail1": 12, "tail2": 6},
        trunk=(1.02, 1.13), chest=(1.0, 0.95), neck=(0.62, 1.3), neck2=(1.0, 1.0),
        head=(0.96, 1.1, 1.06), jaw=(0.7, 0.95, 1.22), face=(0.38, 1.0, 1.12), ear=(0.8, 0.85, 1.7),
        tail=(1.22, 1.1), tail4=(1.0, 1.15), upper=(0.84, 1.08), lower=(0.82, 1.06),
        cannons=(0.76, 1.1), paws=(0.95, 0.98),
    ),
    "lion": define_species(
        1.55, {"neck0": -16, "neck1": -4, "head": 10, "tail0": 12},
        trunk=(1.1, 0.98), chest=(1.0, 1.08), pelvis=(1.0, 0.93), neck=(0.72, 1.42, 0.95),
        head=(1.12, 1.16, 1.08), jaw=(0.95, 1.3, 1.08), face=(0.74, 1.32, 1.05),
        ear=(0.55, 0.9, 1.4), tail=(1.35, 0.78), tail4=(1.0, 1.45), upper=(0.94, 1.05),
        lower=(0.92, 1.15), cannons=(0.8, 1.2), paws=(1.2, 1.18),
    ),
    "dog": define_species(
        0.8, {"neck0": 6, "head": -2, "tail0": 38, "tail1": 8},
        trunk=(0.94, 0.87), spine0=(1.0, 0.88), neck=(0.8, 0.92), head=(1.02, 1.06),
        jaw=(0.95, 1.0), face=(0.95, 1.0), ear=(0.95, 0.72, 1.6), tail=(0.74, 0.68),
        upper=(0.96, 0.9), lower=(0.93, 0.78), cannons=(0.9, 0.76), paws=(0.95, 0.8),
    ),
    "pinscher": define_species(
        0.95, {"neck0": 14, "neck1": 4, "head": -8, "tail0": 60, "tail1": 6},
        trunk=(0.9, 0.89), spine0=(1.0, 0.78), spine1=(1.0, 0.95), chest=(1.0, 1.1),
        neck=(0.92, 0.92), head=(0.98, 0.94, 0.94), jaw=(1.0, 0.85), face=(1.1, 0.82),
        ear=(1.4, 0.62, 1.4), tail=(0.8, 0.45), upper=(1.06, 0.96), lower=(1.06, 0.7),
        cannons=(1.02, 0.7), paws=(0.92, 0.76),
    ),
    "wolf": define_species(
        1, {"neck0": -22, "neck1": -6, "head": 14, "tail0": 40, "tail1": 8},
        trunk=(1.0, 1.06, 0.96), chest=(1.0, 1.1), neck=(0.76, 1.5), neck0=(1.0, 1.05),
        head=(1.0, 1.06, 1.06), jaw=(1.02, 1.05), face=(1.02, 1.02), ear=(0.7, 0.72, 1.5),
        tail=(0.84, 1.8), tail0=(1.0, 0.8), tail3=(1.0, 1.2), tail4=(1.0, 1.1), upper=(0.96, 1.04),
        lower=(0.94, 0.98), cannons=(0.9, 0.96), paws=(1.02, 1.0),
    ),
    "fox": define_species(
        0.6, {"neck0": -8, "head": 6, "tail0": 18},
        trunk=(1.0, 0.8), neck=(0.74, 1.0), head=(0.92, 0.94, 1.02), jaw=(0.95, 0.8),
        face=(0.95, 0.78), nose=(1.0, 0.85), ear=(0.95, 0.8, 1.6), tail=(1.15, 1.85),
        tail0=(1.0, 0.7), upper=(0.86, 0.84), lower=(0.82, 0.66), cannons=(0.8, 0.66),
        paws=(0.82, 0.8),
    ),
    "horse": define_species(
        1.9, {"neck0": -14, "head": -22, "tail0": -16, "tail1": -6, "thigh": -4, "shank": 20,
              "hock": -14},
        trunk=(1.18, 1.24), spine0=(1.0, 1.02), neck=(1.22, 1.42, 0.8), neck0=(1.0, 1.12),
        neck2=(1.0, 0.9), head=(1.25, 1.06, 0.84), jaw=(1.35, 1.80, 0.72),
        muzzle=(1.85, 1.34, 0.90), nose=(1.55, 1.50, 0.95), ear=(0.85, 0.65, 1.3), tail=(1.05, 1.1),
        tail3=(1.0, 1.15), upper=(1.14, 1.16), lower=(1.2, 1.02), cannons=(1.24, 0.92),
        paws=(0.88, 0.9),
    ),
    "foal": define_species(
        1.25, {"neck0": 4, "head": -20, "tail0": -14, "thigh": -4, "shank": 20, "hock": -14},
        trunk=(0.82, 0.96), neck=(1.02, 1.1, 0.82), head=(1.12, 1.02, 0.88), jaw=(1.3, 1.22, 0.82),
        muzzle=(1.4, 1.18, 0.95), nose=(1.28, 1.2), ear=(0.58, 0.62, 1.3), tail=(0.72, 1.1),
        upper=(1.1, 1.0), lower=(1.34, 0.86), cannons=(1.42, 0.78), paws=(0.8, 0.8),
    ),
    "cow": define_species(
        1.9, {"neck0": -22, "neck1": -2, "head": -16, "tail0": -18, "tail1": -8, "shank": 14,
              "hock": -10},
        trunk=(1.24, 1.28), pelvis=(1.0, 0.97), spine0=(1.0, 1.06), neck=(0.88, 1.42, 0.74),
        head=(1.2, 1.16, 0.98), jaw=(1.3, 1.3, 0.9), muzzle=(1.5, 1.45, 0.98),
        nose=(1.15, 1.62, 1.1), ear=(0.62, 0.8, 1.5), tail=(1.15, 0.62), tail4=(1.0, 1.7),
        upper=(0.98, 0.98), thigh=(1.0, 1.2), lower=(1.0, 1.08), cannons=(0.98, 1.0),
        paws=(0.95, 1.12),
    ),
    "hippo": define_species(
        2, {"neck0": -22, "neck1": -2, "head": -4, "tail0": 15, "tail1": 5},
        trunk=(1.26, 1.52, 1.06), neck=(0.66, 1.72, 1.02), head=(1.35, 1.42, 1.08),
        jaw=(1.55, 1.8, 1.45), muzzle=(1.3, 1.75, 1.18), nose=(1.15, 2.60, 1.65), ear=(0.42, 1.15),
        tail=(0.5, 1.0), upper=(0.86, 1.35), thigh=(1.0, 1.1), lower=(0.76, 1.65),
        cannons=(0.66, 1.75), paws=(1.12, 1.45),
    ),
}

# The scanned dog stands with its legs set back.
STANCE = {"thigh": 16.0, "shank": -4.0, "hock": -12.0}

DOG: dict[str, Species] = {
    "cat": define_species(
        0.62, {"neck0": -8, "head": 6, "tail0": 34, "tail1": 4, "tail3": -14, "tail4": -14},
        trunk=(0.98, 1.22), neck=(0.52, 1.34), head=(0.98, 1.12, 1.08), jaw=(0.62, 1.05, 1.25),
        face=(0.4, 1.05, 1.15), ear=(0.78, 0.75, 1.45), tail=(1.02, 1.75), tail4=(1.0, 1.3),
        upper=(0.82, 1.08), lower=(0.8, 1.04), cannons=(0.75, 1.02), paws=(0.92, 0.95),
    ),
    "lion": define_species(
        1.6, {"neck0": -22, "head": 14, "tail0": 4},
        trunk=(1.06, 1.12), chest=(1.0, 1.05), neck=(0.62, 1.4, 1.05), head=(1.25, 1.4, 1.05),
        jaw=(1.0, 1.4, 1.2), face=(0.78, 1.4, 1.12), ear=(0.4, 0.75, 1.35), tail=(1.2, 1.2),
        tail4=(1.0, 1.7), upper=(0.86, 1.25), lower=(0.8, 1.42), cannons=(0.74, 1.45),
        paws=(1.22, 1.28),
    ),
    "tiger": define_species(
        1.6, {"neck0": -28, "head": 18, "tail0": 0},
        trunk=(1.12, 1.12), neck=(0.56, 1.28), head=(1.22, 1.36, 1.08), jaw=(0.95, 1.35, 1.2),
        face=(0.72, 1.35, 1.15), ear=(0.4, 0.75, 1.35), tail=(1.22, 1.45), upper=(0.82, 1.2),
        lower=(0.76, 1.32), cannons=(0.7, 1.35), paws=(1.2, 1.22),
    ),
    "hound": define_species(
        1, {"tail0": 8},
        ear=(1.05, 0.72, 1.3), tail=(0.78, 0.9), lower=(0.95, 0.84), cannons=(0.93, 0.8),
        paws=(1.0, 0.88), trunk=(0.94, 1.02), neck=(0.9, 1.0), head=(1.06, 1.08),
    ),
    "dog": define_species(
        0.85, {"tail0": 42, "tail1": 8},
        trunk=(0.98, 1.02), neck=(0.74, 1.06), head=(1.12, 1.18), jaw=(0.9, 1.1), face=(0.86, 1.14),
        ear=(0.9, 0.72, 1.6), tail=(0.72, 1.0), upper=(0.92, 1.05), lower=(0.84, 0.92),
        cannons=(0.8, 0.9), paws=(1.05, 0.95),
    ),
    "puppy": define_species(
        0.5, {"neck0": 4, "tail0": 40, "tail1": 10},
        trunk=(0.84, 1.05), neck=(0.62, 1.18), head=(1.22, 1.32, 1.06), jaw=(0.85, 1.2, 1.1),
        face=(0.66, 1.28, 1.1), ear=(0.8, 0.85, 1.4), tail=(0.72, 1.35), upper=(0.8, 1.08),
        lower=(0.66, 1.28), cannons=(0.6, 1.3), paws=(1.22, 1.22),
    ),
    "wolf": define_species(
        1.1, {"neck0": -24, "head": 18, "tail0": 26, "tail3": -10},
        trunk=(0.98, 1.18, 0.94), chest=(1.0, 1.05), neck=(0.68, 1.5), head=(1.06, 1.18, 1.05),
        jaw=(1.0, 1.12), face=(0.98, 1.12), ear=(0.68, 0.75, 1.4), tail=(0.78, 2.4),
        tail0=(1.0, 0.75), upper=(0.98, 1.14), lower=(0.96, 1.08), cannons=(0.94, 1.02),
        paws=(1.08, 1.05),
    ),
    "fox": define_species(
        0.62, {"neck0": -12, "head": 8, "tail0": 16},
        trunk=(1.0, 0.88), neck=(0.68, 1.08), head=(0.96, 1.04, 1.04), jaw=(0.95, 0.85),
        face=(0.95, 0.85), ear=(0.95, 0.75, 1.4), tail=(1.05, 2.8), tail0=(1.0, 0.65),
        upper=(0.84, 0.92), lower=(0.74, 0.8), cannons=(0.72, 0.78), paws=(0.86, 0.88),
    ),
    "horse": define_species(
        1.95, {"neck0": -16, "head": -9, "tail0": -20, "tail3": -20, "tail4": -18, "shank": 10,
               "hock": -22},
        trunk=(1.1, 1.38, 1.0), spine0=(1.0, 1.06), neck=(1.3, 1.5, 0.86), neck0=(1.0, 1.12),
        head=(1.25, 1.02, 0.86), jaw=(1.65, 1.6, 0.85), muzzle=(1.95, 1.62, 0.85),
        nose=(1.65, 1.75, 0.95), ear=(0.5, 0.5, 1.3), tail=(1.0, 1.7), upper=(1.16, 1.2),
        lower=(1.26, 1.0), cannons=(1.32, 0.88), paws=(0.8, 0.85),
    ),
    "cow": define_species(
        1.9, {"neck0": -18, "head": 0, "tail0": -20, "tail3": -20, "shank": 6, "hock": -18},
        trunk=(1.24, 1.4, 1.06), neck=(0.84, 1.5, 0.86), head=(1.28, 1.32), jaw=(1.35, 1.42),
        muzzle=(1.42, 1.56, 1.02), nose=(1.15, 1.75, 1.12), ear=(0.52, 0.7, 1.4), tail=(1.0, 1.1),
        upper=(0.96, 1.35), lower=(0.92, 1.22), cannons=(0.88, 1.15), paws=(0.95, 1.12),
    ),
}

GORILLA: dict[str, Species] = {
    "gorilla": define_species(
        1.25, {},
        head=(1.04, 1.05), thigh=(1.12, 1.0), shank=(1.12, 0.96), foot=(1.15, 0.9), arms=(1.0, 1.0),
        hand=(1.15, 0.92), fingers=(1.2, 0.8), toes=(1.2, 0.75),
    ),
    "silverback": define_species(
        1.35, {},
        chest=(1.05, 1.15), spine1=(1.0, 1.1), neck0=(0.9, 1.2), head=(1.05, 1.05),
        arms=(1.02, 1.06), clavicle=(1.12, 1.15), upper=(0.98, 0.98), hand=(1.15, 0.95),
        fingers=(1.2, 0.82), foot=(1.1, 0.92), toes=(1.2, 0.78), shank=(1.05, 0.95),
    ),
    "chimpanzee": define_species(
        0.95, {},
        trunk=(0.95, 0.8), neck0=(1.0, 0.82), head=(0.95, 0.92), muzzle=(1.1, 1.0),
        clavicle=(0.86, 0.82), arms=(0.98, 0.78), hand=(1.0, 0.82), fingers=(1.1, 0.85),
        upper=(1.0, 0.8), lower=(1.0, 0.84), foot=(1.0, 0.88), toes=(1.0, 0.88),
    ),
    "bear": define_species(
        1.3, {"head": 4},
        trunk=(1.12, 1.1, 0.95), neck0=(1.1, 1.05), head=(0.95, 0.98, 1.12), muzzle=(1.75, 0.82),
        clavicle=(0.9, 1.0), humerus=(0.7, 1.12), ulna=(0.66, 1.18), hand=(0.85, 1.15),
        fingers=(0.55, 1.0), upper=(0.95, 1.1), lower=(0.95, 1.08),
    ),
}

CENTAUR: dict[str, Species] = {
    "centaur": define_species(
        1, {},
    ),
    "centaur_stout": define_species(
        1, {},
        trunk=(1.02, 1.12), torso=(1.0, 1.18), arms=(1.0, 1.22), clavicle=(1.06, 1.15),
        upper=(0.97, 1.12), lower=(0.92, 1.18), cannons=(0.9, 1.18), paws=(1.05, 1.15),
    ),
    "centaur_slender": define_species(
        0.95, {},
        trunk=(0.95, 0.9), torso=(1.04, 0.88), arms=(1.04, 0.85), clavicle=(0.92, 0.9),
        upper=(1.02, 0.92), lower=(1.06, 0.88), cannons=(1.06, 0.88), tail=(1.15, 0.9),
    ),
}
