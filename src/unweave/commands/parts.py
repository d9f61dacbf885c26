"""`unweave methods list`, `unweave architectures list` and `unweave likelihoods list`.

Each list has the built-in entries, then those of installed plug-ins. Printing a list imports torch.
"""

from __future__ import annotations

from unweave.commands.command_app import command_app
from unweave.commands.console import console, print_problem
from unweave.commands.listing import Listing

methods_app = command_app("methods", "Methods of learning a representation.")
architectures_app = command_app("architectures", "Architectures: the encoders and decoders of methods.")
likelihoods_app = command_app("likelihoods", "Likelihoods: how the output of a decoder explains an image.")


@methods_app.command(name="list")
def list_methods() -> None:
    """List all methods: what they are, and their settings with their defaults."""
    from unweave.methods import METHODS, plugin_methods, settings_of, summary

    table = Listing("name", "what it is", "settings", below="settings")
    for kind in (*METHODS, *plugin_methods(print_problem)):
        settings = ", ".join(f"{name} {value}" for name, value in settings_of(kind()).items())
        table.add_row(kind.name, summary(kind), settings or "none")
    console().print(table)


@architectures_app.command(name="list")
def list_architectures() -> None:
    """List all architectures: what they are, and the heights and widths of images that they take."""
    from unweave.nn.networks.architectures import ARCHITECTURES, architecture_named
    from unweave.plugins.loading import installed_parts

    table = Listing("name", "what it is", "height and width", below="height and width")
    plugins = installed_parts("architecture", ARCHITECTURES, architecture_named, print_problem)
    for architecture in (*ARCHITECTURES.values(), *plugins):
        table.add_row(architecture.name, architecture.description, str(architecture.sizes))
    console().print(table)


@likelihoods_app.command(name="list")
def list_likelihoods() -> None:
    """List all likelihoods: what they are, and how many channels the decoder makes for one of the image."""
    from unweave.nn.distributions.likelihood import LIKELIHOODS, likelihood_named
    from unweave.plugins.loading import installed_parts

    table = Listing("name", "what it is", "outputs per channel", below="outputs per channel")
    plugins = installed_parts("likelihood", LIKELIHOODS, likelihood_named, print_problem)
    for likelihood in (*LIKELIHOODS.values(), *plugins):
        table.add_row(likelihood.name, likelihood.description, str(likelihood.outputs))
    console().print(table)
