package consoles

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/power"
	"slipway.dev/slipway/web/rest"
)

// Console gives a client the serial console of a host, until either of them goes or the server stops.
func (s *Server) Console(c echo.Context) error {
	r := c.Request()
	if !isUpgrade(r) {
		return &rest.StatusError{Status: http.StatusUpgradeRequired, Err: inventory.Errorf(inventory.Invalid, "a console needs a connection of its own").
			WithHint("ask by HTTP/1.1 with Connection: Upgrade and Upgrade: %s; slipway host console does", power.ConsoleProtocol)}
	}
	req := rest.RequestOf(r.Context())
	// The place is taken before the host is read, so that a flood of requests costs no transaction each.
	back, err := s.shares.Take(req)
	if err != nil {
		return err
	}
	defer back()
	s.lines.running.Add(1)
	defer s.lines.running.Done()
	ctx, cancel := context.WithCancel(req)
	defer cancel()
	req = req.With(ctx)
	// http.Server.Shutdown neither ends nor awaits hijacked connections. Life ends them, and Wait waits for running.
	defer context.AfterFunc(s.cfg.Life, cancel)()
	h, err := s.rest.ReadHost(req, c.Param("host"))
	if err != nil {
		return err
	}
	line, err := s.lines.join(ctx, h)
	if err != nil {
		return err
	}
	// Both directions and the end of ctx close it, from different goroutines.
	closeLine := sync.OnceFunc(func() { _ = line.Close() })
	defer closeLine()
	// The audit comes before the first byte: what somebody types into a console may not be undone.
	if err := errors.Join(s.cfg.Power.Note(req, h, "serial console opened"), s.consoleOpened(req, h)); err != nil {
		return err
	}
	if err := s.join(ctx, c.Response(), line, closeLine); err != nil {
		s.rest.Log.Debug("console ended", "host", h.Name, "op", req.ID, "err", err)
	}
	return nil
}

func isUpgrade(r *http.Request) bool {
	return r.ProtoMajor == 1 && strings.EqualFold(r.Header.Get("Upgrade"), power.ConsoleProtocol) &&
		strings.Contains(strings.ToLower(r.Header.Get("Connection")), "upgrade")
}

// join connects a client and a console until one of them ends. It returns when both directions have ended, so that nobody uses
// conn or line after it.
func (s *Server) join(ctx context.Context, w http.ResponseWriter, line io.ReadWriter, closeLine func()) error {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	// The server has set deadlines for a request. A console is quiet for hours; only writes keep one.
	if err := errors.Join(conn.SetReadDeadline(time.Time{}), conn.SetWriteDeadline(time.Now().Add(s.cfg.WriteFor))); err != nil {
		return err
	}
	if _, err := io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+power.ConsoleProtocol+"\r\n\r\n"); err != nil {
		return err
	}
	// Closing both ends is what ends the two loops below. They know no context.
	defer context.AfterFunc(ctx, func() {
		_ = conn.Close()
		closeLine()
	})()
	typed := make(chan error, 1)
	go func() {
		_, err := io.Copy(line, buffered.Reader) // with what came behind the request
		closeLine()                              // ends the other direction
		typed <- err
	}()
	// This goroutine reads the console, the other one the client. Whichever ends first closes both ends for the other.
	said := s.relay(conn, line)
	_ = conn.Close()
	return errors.Join(said, <-typed)
}

// relay sends what a console says to a client, which is cut when it takes no bytes for too long.
func (s *Server) relay(conn interface {
	io.Writer
	SetWriteDeadline(t time.Time) error
}, line io.Reader,
) error {
	buf := make([]byte, 4<<10)
	for {
		n, err := line.Read(buf)
		if n > 0 {
			if err := conn.SetWriteDeadline(time.Now().Add(s.cfg.WriteFor)); err != nil {
				return err
			}
			// A client that takes no bytes would hold the listener until it is cut off there, with all that it has not read.
			if _, err := conn.Write(buf[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// consoleOpened notes that somebody looks at the console of a host. A console without its entry is not opened.
func (s *Server) consoleOpened(req *rest.Request, h inventory.Host) error {
	r := rest.RowOf(req, "open-console", "host")
	r.Name, r.HostID, r.Status = h.Name, h.ID, http.StatusOK
	return s.rest.Store.Write(req.Detached(), func(tx inventory.Tx) error { return s.rest.Add(tx, &r) })
}
