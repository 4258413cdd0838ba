package main

import (
	"context"
	"fmt"
)

// contestOptions is what a contestant is told.
type contestOptions struct{ nats, mqtt, dir string }

// contest runs this program as a contestant until ctx ends.
func contest(ctx context.Context, name string, o contestOptions) error {
	switch name {
	case contestByHand:
		return byHand(ctx, o)
	case contestWatermill:
		return inWatermill(ctx, o)
	}
	return fmt.Errorf("no contestant is called %q", name)
}
