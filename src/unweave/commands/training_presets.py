"""Settings that `unweave train --preset NAME` starts from."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from unweave.methods.method import Method
from unweave.nn.optimiser import Adam


@dataclass(frozen=True)
class Preset:
    """Settings to start from; settings of a method are above those of all."""

    shared: dict[str, Any] = dataclasses.field(default_factory=dict)  # fields of RunSpec
    settings: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)  # by method

    def run_fields(self, method: Method) -> dict[str, Any]:
        """Fields of RunSpec for a method: its own defaults, and above them those of the preset.

        A preset that raises the learning rate raises the own rates of players as much, so that a
        discriminator keeps pace with the network that it judges. Where all players have rates of their own,
        as in a GAN, none depends on the run's rate, and all stay as they are.
        """
        fields = {**method.run_defaults, **self.shared}
        rate = self.shared.get("learning_rate")
        if rate is not None and _mixes_rates(method):
            fields["player_rate"] = rate / Adam.learning_rate
        return fields


def _mixes_rates(method: Method) -> bool:
    """Whether some networks have the run's learning rate, and some players a rate of their own."""
    own = [player.optimiser is not None for player in method.players]
    return any(own) and (not method.own_networks or not all(own))


PRESETS = {
    "study": Preset(),
    "quick": Preset(
        {"steps": 3000, "batch": 32, "learning_rate": 1e-3, "schedule": "linear"},
        {
            "beta_vae": {"beta": 16.0},
            # With gamma 1000, this learning rate and so few steps, images are not learned.
            "annealed_vae": {"gamma": 10.0},
            "s2_annealed_vae": {"gamma": 10.0},
            # With rate 1 at this learning rate, two of four runs on dSprites lost their images.
            "aae": {"adversarial_rate": 0.3},
        },
    ),
}
