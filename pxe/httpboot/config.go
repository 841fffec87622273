package httpboot

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

// sendConfig answers with one document of the configuration of the boot, or with all of them as an initrd.
//
// It answers every failure with 503 and the reason. Ignition ends a boot without end on a 4xx, and takes 204 for an
// empty configuration. cloud-init gives up documents that it cannot find. All of them ask again after a 503.
func (s *Server) sendConfig(x *exchange) int {
	ctx, cancel := context.WithTimeout(x.r.Context(), answerFor)
	defer cancel()
	ask := pxe.ConfigRequest{
		Session: x.session, Source: x.source, Base: x.base, Name: x.name, Key: x.key,
		Accept: inventory.Clean(x.r.Header.Get("Accept"), 500), Agent: inventory.Clean(x.r.UserAgent(), 200),
		IsPeek: x.r.Method == http.MethodHead, IsTLS: x.r.TLS != nil,
	}
	if x.place == archive {
		ask.Name = pxe.ConfigArchive
	}
	doc, err := s.cfg.Boots.Document(ctx, ask)
	if err != nil {
		s.logFailure(x, err)
		msg, hint := "the boot server has an internal error", "its log says more"
		if e := (*inventory.Error)(nil); errors.As(err, &e) && e.Kind != inventory.Internal {
			msg, hint = e.Msg, e.Hint
		}
		return x.later(retryConfig, msg, hint)
	}
	h := x.w.Header()
	h.Set("Content-Type", doc.ContentType)
	h.Set("Content-Length", strconv.Itoa(len(doc.Data)))
	h.Set("Cache-Control", "no-store")
	x.w.WriteHeader(http.StatusOK)
	if x.r.Method != http.MethodHead {
		if _, err := x.w.Write(doc.Data); err != nil {
			s.cfg.Log.Info("configuration not sent whole", "addr", x.source.String(), "boot", x.session, "err", err)
		}
	}
	return http.StatusOK
}
