package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const lockFile = "gateway.lock"

// dirLock is the lock of a data directory. The kernel drops it with the
// process, however that ends.
type dirLock struct{ file *os.File }

// lockDir takes the lock, or fails with ErrLocked at once. The process id in
// the file is for people; the lock itself is flock's.
func lockDir(dir string) (*dirLock, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock file: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w: %s is held by process %s", ErrLocked, dir, holder(f))
		}
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	l := &dirLock{file: f}
	if err := l.writePID(); err != nil {
		return nil, errors.Join(fmt.Errorf("write the lock file: %w", err), l.release())
	}
	return l, nil
}

func (l *dirLock) writePID() error {
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	_, err := l.file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// release leaves the file where it is: to remove it would let two processes
// lock two files of one name.
func (l *dirLock) release() error {
	return errors.Join(l.file.Truncate(0), l.file.Close())
}

func holder(f *os.File) string {
	text, err := io.ReadAll(io.NewSectionReader(f, 0, 32))
	if pid := strings.TrimSpace(string(text)); err == nil && pid != "" {
		return pid
	}
	return "unknown"
}
