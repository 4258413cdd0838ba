package nats

import (
	"context"
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
func (l *serverLog) Noticef(format string, v ...any) { l.say(slog.LevelDebug, format, v) }

// Warnf logs a warning.
func (l *serverLog) Warnf(format string, v ...any) { l.say(slog.LevelWarn, format, v) }

// Errorf logs an error.
func (l *serverLog) Errorf(format string, v ...any) { l.say(slog.LevelError, format, v) }

// Debugf logs details.
func (l *serverLog) Debugf(format string, v ...any) { l.say(slog.LevelDebug, format, v) }

// Tracef logs details of details.
func (l *serverLog) Tracef(format string, v ...any) { l.say(slog.LevelDebug, format, v) }

func (l *serverLog) say(level slog.Level, format string, v []any) {
	if l.log.Enabled(context.Background(), level) {
		l.log.Log(context.Background(), level, "embedded server", "says", fmt.Sprintf(format, v...))
	}
}

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
