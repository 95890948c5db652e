"""`roomtone bench endpoint`: how many pauses inside speech are cut, against how late an end is known."""
