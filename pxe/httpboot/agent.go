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

// Agents gives our RAM-disk agents their work, and takes what they tell. A request has the key of its boot, "" for none: only
// the script that starts the agent names it. Its errors are *inventory.Error when the
// machine's console may show them.
type Agents interface {
	// AgentTask returns what the agent is to do, and waits up to wire.TaskWait while that is nothing. version is that of
	// the protocol that the agent speaks.
	AgentTask(ctx context.Context, s inventory.SessionID, source netip.Addr, key string, version int, base string) (wire.Task, error)
	AgentReport(ctx context.Context, s inventory.SessionID, source netip.Addr, key string, r wire.Report) error
}

// sendTask answers an agent that asks for work.
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

// takeAgentReport hands on what an agent tells.
func (s *Server) takeAgentReport(x *exchange) int {
	body, err := io.ReadAll(http.MaxBytesReader(x.w, x.r.Body, wire.MaxReport))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
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
