package nats

import (
	"fmt"
	"log/slog"
	"sync"
)

// serverLog passes the embedded server's log on, and keeps what it calls fatal:
// the library's own logger would end the process there.
type serverLog struct {
	log *slog.Logger

	mu    sync.Mutex
	first string
}

// Noticef logs what is of no interest to those who run the gateway.
func (l *serverLog) Noticef(format string, v ...any) { l.log.Debug(fmt.Sprintf(format, v...)) }

// Warnf logs a warning.
func (l *serverLog) Warnf(format string, v ...any) { l.log.Warn(fmt.Sprintf(format, v...)) }

// Errorf logs an error.
func (l *serverLog) Errorf(format string, v ...any) { l.log.Error(fmt.Sprintf(format, v...)) }

// Debugf logs details.
func (l *serverLog) Debugf(format string, v ...any) { l.log.Debug(fmt.Sprintf(format, v...)) }

// Tracef logs details of details.
func (l *serverLog) Tracef(format string, v ...any) { l.log.Debug(fmt.Sprintf(format, v...)) }

// Fatalf keeps the first reason why the server cannot run.
func (l *serverLog) Fatalf(format string, v ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first == "" {
		l.first = fmt.Sprintf(format, v...)
	}
}

func (l *serverLog) fatal() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first
}
