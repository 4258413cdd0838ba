package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

// gatewayBinary is the program under test. TestMain builds it once, before any
// test runs.
var gatewayBinary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "gateway-integration-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	gatewayBinary = filepath.Join(dir, "gateway")
	build := exec.Command("go", "build", "-o", gatewayBinary, "../cmd/gateway")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build the gateway:", err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(status int) {
		_ = os.RemoveAll(dir)
		os.Exit(status)
	}))
}
