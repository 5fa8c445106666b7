package acme

import (
	"context"
	"log/slog"
	"maps"
	"slices"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// newZap returns a logger for the library, which wants one of zap. What it tells in the
// course of its work is for who looks for a fault; what came of it, Manager tells itself.
func newZap(to *slog.Logger) *zap.Logger { return zap.New(&slogCore{to: to.Handler()}) }

// slogCore hands entries on to slog.
type slogCore struct{ to slog.Handler }

var _ zapcore.Core = (*slogCore)(nil)

// levelOf returns how important an entry of the library is to us.
func levelOf(l zapcore.Level) slog.Level {
	switch {
	case l >= zapcore.ErrorLevel:
		return slog.LevelWarn // it goes on, and says so again as an event if it matters
	case l == zapcore.WarnLevel:
		return slog.LevelInfo
	}
	return slog.LevelDebug
}

// Enabled reports whether entries of that level are wanted.
func (c *slogCore) Enabled(l zapcore.Level) bool {
	return c.to.Enabled(context.Background(), levelOf(l))
}

// With returns a core that adds fields to each entry.
func (c *slogCore) With(fields []zapcore.Field) zapcore.Core {
	return &slogCore{to: c.to.WithAttrs(attrs(fields))}
}

// Check adds the core to those that write an entry, if it wants it.
func (c *slogCore) Check(e zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return to.AddCore(e, c)
	}
	return to
}

// Write hands an entry on.
func (c *slogCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	r := slog.NewRecord(e.Time, levelOf(e.Level), "acme: "+e.Message, 0)
	r.AddAttrs(attrs(fields)...)
	return c.to.Handle(context.Background(), r)
}

// Sync does nothing: nothing is kept.
func (c *slogCore) Sync() error { return nil }

func attrs(fields []zapcore.Field) []slog.Attr {
	values := zapcore.NewMapObjectEncoder()
	for _, f := range fields {
		f.AddTo(values)
	}
	all := make([]slog.Attr, 0, len(values.Fields))
	for _, name := range slices.Sorted(maps.Keys(values.Fields)) {
		all = append(all, slog.Any(name, values.Fields[name]))
	}
	return all
}
