package manager

import (
	"context"
	"log/slog"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

const stopNoise = "error received after stop sequence was engaged"

// quiet is a handler that lowers the level of what the Kubernetes libraries log. Their information is about their
// inside. Their errors are retried, and a condition shows them.
type quiet struct{ slog.Handler }

func lower(l slog.Level) slog.Level {
	switch {
	case l >= slog.LevelError:
		return slog.LevelWarn
	case l >= slog.LevelWarn:
		return slog.LevelInfo
	}
	return slog.LevelDebug + min(l, 0) // what they call verbose is not even for --log-level debug
}

// Enabled implements slog.Handler.
func (q quiet) Enabled(ctx context.Context, l slog.Level) bool {
	return q.Handler.Enabled(ctx, lower(l))
}

// Handle implements slog.Handler.
func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	r.Level = lower(r.Level)
	// By its text, because controller-runtime gives this message no level of its own.
	if r.Message == stopNoise {
		r.Level = slog.LevelDebug // a manager that stops gives up its lease, and calls that an error
	}
	if !q.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return q.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(attrs)} }

// WithGroup implements slog.Handler.
func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name)} }

func logrOf(log *slog.Logger) logr.Logger { return logr.FromSlogHandler(quiet{log.Handler()}) }

// RouteLogs sends the logs of the Kubernetes libraries of the whole process into log. Call it once, before any of
// them runs.
func RouteLogs(log *slog.Logger) {
	klog.SetLogger(logrOf(log))
	ctrllog.SetLogger(logrOf(log))
}
