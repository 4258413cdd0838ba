package gateway

import "sync"

// watch lets any number of readers wait for the next commit.
type watch struct {
	mu   sync.Mutex
	next chan struct{}
}

func newWatch() *watch { return &watch{next: make(chan struct{})} }

// Committed is closed when something more was committed.
func (w *watch) Committed() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.next
}

func (w *watch) announce() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.next)
	w.next = make(chan struct{})
}
