package httpboot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

// exchange is one request and its way back.
type exchange struct {
	route
	w      http.ResponseWriter
	r      *http.Request
	source netip.Addr // the machine
	local  netip.Addr // our address that it asked
	base   string     // our URL as it reaches us; never from Host, which EDK2 sends without the port
}

const (
	answerFor = 10 * time.Second // for the engine to answer
	maxReport = 64 << 10
	retryOurs = 10 * time.Second // Retry-After when we are at fault
	// retryConfig is Retry-After for a configuration that cannot be given; what reads one asks again by itself.
	retryConfig = 5 * time.Second
)

// methods returns the methods that a place allows. A script allows no HEAD: to make a script is to decide what the
// machine boots.
func (p place) methods() []string {
	switch p {
	case script:
		return []string{http.MethodGet}
	case report:
		return []string{http.MethodGet, http.MethodPost}
	case task:
		return []string{http.MethodGet}
	case told:
		return []string{http.MethodPost}
	}
	return []string{http.MethodGet, http.MethodHead}
}

// ServeHTTP implements http.Handler. A panic of a handler ends this connection only: the answer may be half sent, so
// net/http must close it.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := s.cfg.Now()
	x := &exchange{route: parsePath(r.URL.EscapedPath()), w: w, r: r, source: sourceOf(r)}
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		a := addrOf(local)
		x.local, x.base = a.Addr(), pxe.BaseURL(a.Addr(), int(a.Port()))
		if r.TLS != nil {
			x.base = pxe.SecureURL(a.Addr(), int(a.Port()))
		}
	}
	status := http.StatusInternalServerError
	defer func() {
		if p := recover(); p != nil {
			if p != http.ErrAbortHandler {
				s.cfg.Log.Error("boot request panicked", "addr", x.source.String(), "boot", x.session, "err", p, "stack", string(debug.Stack()))
			}
			panic(http.ErrAbortHandler) // closes the connection: the answer may be half sent
		}
		s.Metrics.Requests.WithLabelValues(x.place.label(), strconv.Itoa(status)).Inc()
		s.Metrics.Seconds.WithLabelValues(x.place.label()).Observe(s.cfg.Now().Sub(start).Seconds())
		if s.cfg.Log.Enabled(r.Context(), slog.LevelDebug) {
			s.cfg.Log.Debug("boot request", "addr", x.source.String(), "boot", x.session, "op", r.Method, "path", x.pathForLog(), "status", status)
		}
	}()
	status = s.serve(x)
}

// pathForLog is the path of the request without the key: who reads the log must not be able to speak for the machine.
func (x *exchange) pathForLog() string {
	path := x.r.URL.Path
	if x.key != "" {
		path = strings.ReplaceAll(path, x.key, "KEY")
	}
	return inventory.Clean(path, 200)
}

func (p place) label() string {
	if p == nowhere {
		return "nowhere"
	}
	return string(p)
}

// sourceOf returns the address of the machine, or the zero Addr where net/http has none. It never reads
// X-Forwarded-For, which a machine could forge.
func sourceOf(r *http.Request) netip.Addr {
	a, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return a.Addr().Unmap().WithZone("")
}

// serve answers a request and returns the status that it sent, for the metrics and the log.
func (s *Server) serve(x *exchange) int {
	if x.place == nowhere {
		return x.text(http.StatusNotFound, "this boot server has nothing at that address", s.whatExists())
	}
	if allowed := x.place.methods(); !slices.Contains(allowed, x.r.Method) {
		x.w.Header().Set("Allow", strings.Join(allowed, ", "))
		return x.text(http.StatusMethodNotAllowed, "only "+strings.Join(allowed, " and ")+" can be used here", "")
	}
	switch x.place {
	case loader:
		return s.sendLoader(x)
	case artefact:
		return s.sendArtefact(x)
	case report:
		return s.takeReport(x)
	case document, archive:
		return s.sendConfig(x)
	case task:
		return s.sendTask(x)
	case told:
		return s.takeAgentReport(x)
	}
	return s.sendScript(x)
}

// sendScript answers ask, autoexec.ipxe and script. On an error it answers 200 with a script that shows the reason on
// the console, waits and asks again. iPXE ends a boot on any other answer.
func (s *Server) sendScript(x *exchange) int {
	ctx, cancel := context.WithTimeout(x.r.Context(), answerFor)
	defer cancel()
	var (
		text []byte
		err  error
		c    pxe.Client
	)
	if x.place == script {
		if c, err = pxe.ParseIdentity(x.r.URL.Query()); err == nil {
			c.Address, c.Server = x.source, x.local
			text, err = s.cfg.Boots.Script(ctx, x.session, c, x.base)
		}
	} else {
		text, err = s.cfg.Boots.Ask(ctx, x.session, x.source, x.base)
	}
	if err != nil {
		s.logFailure(x, err)
		text = pxe.RefusalScript(x.base, x.session, c.MAC, err)
	}
	h := x.w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(text)))
	h.Set("Cache-Control", "no-store")
	x.w.WriteHeader(http.StatusOK)
	if x.r.Method != http.MethodHead {
		_, _ = x.w.Write(text) // a machine that is gone asks again
	}
	return http.StatusOK
}

// takeReport passes a report of a machine to Boots: step, part and detail are in the query, and a log may be in the
// body. A log over 64 KiB is a 413.
func (s *Server) takeReport(x *exchange) int {
	q := x.r.URL.Query()
	rep := pxe.Report{Step: pxe.ReportStep(inventory.Clean(q.Get("step"), 40)), Part: inventory.Clean(q.Get("part"), 40), Detail: inventory.Clean(q.Get("detail"), 500)}
	if x.r.Method == http.MethodPost {
		body, err := io.ReadAll(http.MaxBytesReader(x.w, x.r.Body, maxReport))
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return x.text(http.StatusRequestEntityTooLarge, "the report is longer than 64 KiB", "send the last lines of the log")
		}
		if err != nil {
			return x.text(http.StatusBadRequest, "the report did not arrive whole", "send it again")
		}
		rep.Log = inventory.CleanLines(string(body), maxReport)
	}
	ctx, cancel := context.WithTimeout(x.r.Context(), answerFor)
	defer cancel()
	if err := s.cfg.Boots.Report(ctx, x.session, x.source, x.key, rep); err != nil {
		return s.refuse(x, err)
	}
	return x.text(http.StatusOK, "reported", "")
}

// refuse answers with an error of Boots or Agents. It answers 503 unless the machine itself is at fault. iPXE and
// installers ask again after a 503, and end the boot on any other status.
func (s *Server) refuse(x *exchange, err error) int {
	s.logFailure(x, err)
	var e *inventory.Error
	if !errors.As(err, &e) {
		e = inventory.Errorf(inventory.Internal, "the boot server has an internal error").WithHint("its log says more")
	}
	switch e.Kind {
	case inventory.Invalid:
		return x.text(http.StatusBadRequest, e.Msg, e.Hint)
	case inventory.NotFound:
		return x.text(http.StatusNotFound, e.Msg, e.Hint)
	case inventory.Unauthorized, inventory.Forbidden:
		return x.text(http.StatusForbidden, e.Msg, e.Hint)
	case inventory.Unavailable:
		return x.later(5*time.Second, e.Msg, e.Hint)
	}
	return x.later(retryOurs, e.Msg, e.Hint)
}

// logFailure logs an expected refusal once a minute for each machine and place, and any other error each time.
func (s *Server) logFailure(x *exchange, err error) {
	if e, ok := errors.AsType[*inventory.Error](err); ok && e.Kind != inventory.Internal {
		level := slog.LevelDebug
		if s.refusals.isNew(x.source.String()+" "+string(x.place)+" "+e.Msg, time.Now()) {
			level = slog.LevelInfo
		}
		s.cfg.Log.Log(x.r.Context(), level, "boot request refused", "addr", x.source.String(), "boot", x.session, "op", string(x.place), "err", err)
		return
	}
	if errors.Is(err, context.Canceled) {
		return // the machine has gone
	}
	s.cfg.Log.Error("boot request failed", "addr", x.source.String(), "boot", x.session, "op", string(x.place), "err", err)
}

// later answers 503 with Retry-After in seconds. iPXE waits that long and asks again; it does not understand a date.
func (x *exchange) later(wait time.Duration, msg, hint string) int {
	x.w.Header().Set("Retry-After", strconv.Itoa(max(1, int(wait/time.Second))))
	return x.text(http.StatusServiceUnavailable, msg, hint)
}

// text answers with plain text for people: the message, and the hint on a second line.
func (x *exchange) text(status int, msg, hint string) int {
	body := msg + "\n"
	if hint != "" {
		body += hint + "\n"
	}
	h := x.w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	x.w.WriteHeader(status)
	if x.r.Method != http.MethodHead {
		_, _ = io.WriteString(x.w, body)
	}
	return status
}

// whatExists lists what can be asked for.
func (s *Server) whatExists() string {
	var names []string
	for _, l := range pxe.Loaders() {
		if _, ok := s.cfg.Loaders.Find(l.Name); ok {
			names = append(names, l.Name)
		}
	}
	return fmt.Sprintf("there is: /boot/ask, /boot/script?mac=<address>, /boot/%s, /boot/<loader> with the loaders %s;\n"+
		"and for a running boot: /boot/<session>/ with the same, artefact/<sha256>/<name>, config/<document>, report?step=<step>, and agent/task and agent/report for our agent", pxe.AutoexecName, strings.Join(names, " "))
}
