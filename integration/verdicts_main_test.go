//go:build !brokers

package integration

import (
	"testing"

	"go.uber.org/goleak"
)

// With the tag brokers the package has another TestMain, which looks for leaks
// just as well.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
