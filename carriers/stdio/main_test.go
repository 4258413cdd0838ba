package stdio

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// The test binary is also the guard, the agents and the gateway of its own
// tests: testRole in the environment says which.
const testRole = "STDIO_TEST_ROLE"

func TestMain(m *testing.M) {
	if GuardMain(os.Args) {
		return
	}
	switch role := os.Getenv(testRole); role {
	case "":
		goleak.VerifyTestMain(m)
	case "puppet":
		os.Exit(puppetMain())
	case "flood":
		os.Exit(floodMain())
	case "host":
		os.Exit(hostMain())
	default:
		fmt.Fprintln(os.Stderr, "no such role:", role)
		os.Exit(2)
	}
}
