package hosts

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"rsc.io/qr"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/rest"
)

type stickerInput struct {
	rest.HostRef
	Base string `query:"base" doc:"Address of the web UI that the code leads to, such as https://slipway.example; externalURL of the settings, or the address of the request, when absent" maxLength:"255"`
	host string
}

// Resolve implements huma.Resolver. Without an external URL, the address of the request is the one that people use.
func (in *stickerInput) Resolve(c huma.Context) []error {
	scheme := "http"
	if c.TLS() != nil || rest.EdgeOf(c.Context()).Caller.Secure {
		scheme = "https"
	}
	in.host = scheme + "://" + c.Host()
	return nil
}

// addStickers registers the sticker of a host.
func (s *Server) addStickers() {
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/hosts/{host}/sticker.svg", ID: "get-sticker", Scope: rest.OfPools, Tag: "hosts", Plain: "image/svg+xml",
		Summary: "Draw a sticker for a host: its name, serial and MAC, and a QR code of its page", Errors: []int{http.StatusNotFound},
	},
		func(req *rest.Request, in *stickerInput) (*rest.Text, error) {
			h, err := s.rest.ReadHost(req, in.Host)
			if err != nil {
				return nil, err
			}
			base := cmp.Or(in.Base, s.cfg.Addresses.UI, in.host)
			if err := rest.CheckURL("base", base); err != nil {
				return nil, err
			}
			svg, err := sticker(h, strings.TrimSuffix(base, "/")+"/hosts/"+url.PathEscape(h.Name))
			return &rest.Text{ContentType: "image/svg+xml", Body: svg}, err
		})
}

// sticker draws one of 62 by 29 mm, a size that label printers have.
func sticker(h inventory.Host, link string) ([]byte, error) {
	code, err := qr.Encode(link, qr.M)
	if err != nil {
		return nil, fmt.Errorf("encode %q for a sticker: %w", link, err)
	}
	var b bytes.Buffer
	b.WriteString(`<svg xmlns="http://www.w3.org/2000/svg" width="62mm" height="29mm" viewBox="0 0 620 290" font-family="sans-serif">` +
		`<rect width="620" height="290" fill="#fff"/><title>`)
	_ = xml.EscapeText(&b, []byte("Sticker of "+h.Name)) // a buffer takes all
	b.WriteString("</title>\n")
	const side, quiet = 250.0, 4 // ISO/IEC 18004 wants four modules around it
	unit := side / float64(code.Size+2*quiet)
	b.WriteString(`<path fill="#000" shape-rendering="crispEdges" d="`)
	for y := range code.Size {
		for x := range code.Size {
			if code.Black(x, y) {
				fmt.Fprintf(&b, "M%.2f %.2fh%.2fv%.2fh-%.2fz", 20+unit*float64(x+quiet), 20+unit*float64(y+quiet), unit, unit, unit)
			}
		}
	}
	b.WriteString("\"/>\n")
	line := func(y, size int, text string) {
		const room = 330
		if text = inventory.Clean(text, 64); text == "" {
			return
		}
		fit := ""
		if len(text)*size*6/10 > room {
			fit = fmt.Sprintf(` textLength="%d" lengthAdjust="spacingAndGlyphs"`, room)
		}
		fmt.Fprintf(&b, `<text x="280" y="%d" font-size="%d"%s>`, y, size, fit)
		_ = xml.EscapeText(&b, []byte(text))
		b.WriteString("</text>\n")
	}
	line(75, 46, h.Name)
	line(125, 26, strings.TrimSpace(h.Manufacturer+" "+h.Product))
	if h.Serial != "" {
		line(170, 26, "S/N "+h.Serial)
	}
	for _, m := range h.NICs[:min(len(h.NICs), 1)] {
		line(215, 26, string(m.MAC))
	}
	line(258, 22, placeText(h.Place))
	b.WriteString("</svg>\n")
	return b.Bytes(), nil
}

func placeText(p inventory.Place) string {
	var words []string
	for _, w := range []string{p.Site, p.Row, p.Rack} {
		if w != "" {
			words = append(words, w)
		}
	}
	if p.Unit > 0 {
		words = append(words, fmt.Sprintf("U%d", p.Unit))
	}
	return strings.Join(words, " / ")
}
