"""`roomtone memory`: search, manage, export and delete what rooms remember. Way in: `commands.app`."""
