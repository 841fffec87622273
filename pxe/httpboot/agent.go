package httpboot

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"strconv"

	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/inventory"
)

// Agents gives the agents in RAM disks their tasks, and takes their reports. key is the key of the boot, "" when the
// URL has none: only the script that starts the agent names it. An error of the type *inventory.Error is written for
// people, and the console of the machine shows it.
type Agents interface {
	// AgentTask returns the next task of the agent. It waits up to wire.TaskWait while there is none, and then
	// returns one that says "wait". version is the protocol version that the agent speaks.
	AgentTask(ctx context.Context, s inventory.SessionID, source netip.Addr, key string, version int, base string) (wire.Task, error)
	// AgentReport records the result or the progress of a task. An answer may be lost on its way, so the same report
	// can come twice.
	AgentReport(ctx context.Context, s inventory.SessionID, source netip.Addr, key string, r wire.Report) error
}

// sendTask answers an agent that asks for work. The request stays open for up to wire.TaskWait (long polling), so
// that a task starts at once without many requests.
func (s *Server) sendTask(x *exchange) int {
	version, err := strconv.Atoi(x.r.URL.Query().Get("version"))
	if err != nil || version < 1 {
		return x.text(http.StatusBadRequest, "the request names no version of the protocol", "ask with ?version=1")
	}
	ctx, cancel := context.WithTimeout(x.r.Context(), wire.TaskWait+answerFor)
	defer cancel()
	t, err := s.cfg.Agents.AgentTask(ctx, x.session, x.source, x.key, version, x.base)
	if err != nil {
		return s.refuse(x, err)
	}
	body, err := json.Marshal(t)
	if err != nil {
		return s.refuse(x, err)
	}
	h := x.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	x.w.WriteHeader(http.StatusOK)
	_, _ = x.w.Write(body) // an agent that is gone asks again
	return http.StatusOK
}

// takeAgentReport passes a report of an agent to Agents. A report over wire.MaxReport is a 413: our agent shortens
// its own to fit.
func (s *Server) takeAgentReport(x *exchange) int {
	body, err := io.ReadAll(http.MaxBytesReader(x.w, x.r.Body, wire.MaxReport))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return x.text(http.StatusRequestEntityTooLarge, "the report is longer than 1 MiB", "send the last lines of the log")
	}
	if err != nil {
		return x.text(http.StatusBadRequest, "the report did not arrive whole", "send it again")
	}
	var r wire.Report
	if err := json.Unmarshal(body, &r); err != nil {
		return x.text(http.StatusBadRequest, "the report is not JSON as package agent/wire describes it", "")
	}
	ctx, cancel := context.WithTimeout(x.r.Context(), answerFor)
	defer cancel()
	if err := s.cfg.Agents.AgentReport(ctx, x.session, x.source, x.key, r); err != nil {
		return s.refuse(x, err)
	}
	return x.text(http.StatusOK, "reported", "")
}
