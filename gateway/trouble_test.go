package gateway

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/compozy-gateway/gateway/core"
)

func TestOnlyADestinationThatIsStartingIsNoWarning(t *testing.T) {
	for name, c := range map[string]struct {
		cause error
		want  slog.Level
	}{
		"starting":       {core.ErrStarting, slog.LevelDebug},
		"stopping":       {core.ErrStopping, slog.LevelWarn},
		"something else": {errors.New("broken pipe"), slog.LevelWarn},
		"nothing known":  {nil, slog.LevelWarn},
	} {
		if got := severity(&core.SendError{Code: core.CodeUnavailable, Err: c.cause}); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
