package files

import (
	"context"
	"net/http"
	"strings"
	"time"

	"slipway.dev/slipway/cmd/slipway/serve/peer"
	"slipway.dev/slipway/provision/duty"
)

const (
	logs = "/logs"
	// logFor bounds the question for a log. A page of events asks for many.
	logFor = time.Second
)

// Book has the logs of machines that came to this instance.
type Book interface {
	Text(ref string) (text string, ok bool)
}

// Logs finds logs of machines. A log stays on the disk of the instance that had the engine when it came. So after a takeover the leader asks
// the others for those of before.
type Logs struct {
	Own    Book
	Others *Others // nil: there are none
}

// found is a log, if the instance has it.
type found struct {
	Text string `json:"text"`
	Ok   bool   `json:"ok"`
}

// Register adds the answer to the link.
func (l Logs) Register(link interface{ Handle(string, http.Handler) }) {
	link.Handle("POST "+logs, peer.Handler(func(_ context.Context, ref string) (f found, _ error) {
		f.Text, f.Ok = l.Own.Text(ref) // only its own: an instance that asked others here would start a circle
		return f, nil
	}))
}

// Text returns a log. If nobody has it, away names the instances that may have it, and do not answer: "" if all have answered.
func (l Logs) Text(ctx context.Context, ref string) (text, away string, ok bool) {
	if text, ok = l.Own.Text(ref); ok || l.Others == nil {
		return text, "", ok
	}
	ctx, cancel := context.WithTimeout(ctx, logFor)
	defer cancel()
	all, isKnown := l.Others.seen()
	if !isKnown { // this instance has just started
		return "", "instances that are not known yet", false
	}
	var silent []string
	for _, p := range all {
		var f found
		err := ctx.Err()
		if p.Life != duty.Alive && p.Life != duty.Unknown {
			silent = append(silent, p.Name)
			continue
		}
		if err == nil {
			err = l.Others.at(p.Name, func(base string) (err error) {
				f, err = peer.Call[found](ctx, l.Others.http, base+logs, ref)
				return err
			})
		}
		switch {
		case err != nil:
			silent = append(silent, p.Name)
		case f.Ok:
			return f.Text, "", true
		}
	}
	return "", strings.Join(silent, ", "), false
}
