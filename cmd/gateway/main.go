package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	if runGuard(os.Args) {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal ends ctx; a second one finds the default handling again
	// and ends the process at once.
	context.AfterFunc(ctx, stop)
	// A reader of our output that goes away is a write error, not the end of the
	// process: a server outlives whoever read its log.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)

	p := &process{
		stdin:   os.Stdin,
		stdout:  os.Stdout,
		stderr:  os.Stderr,
		environ: os.Environ(),
		program: programName(os.Args[0]),
	}
	os.Exit(p.run(ctx, os.Args[1:]))
}
