package cloudinit

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
)

const header = "#cloud-config\n"

// mergeOurs makes a part add to what came before it: lists grow at their end and values that stand are kept.
var mergeOurs = list{
	object{{"name", "list"}, {"settings", list{"append"}}},
	object{{"name", "dict"}, {"settings", list{"no_replace", "recurse_list"}}},
}

// mergeHeader says the same of a part that is not ours and cannot say it itself.
const mergeHeader = "list(append)+dict(no_replace,recurse_list)+str()"

// ours returns what is ours before the bootstrap secret's part, and after it.
func (w *render) ours() (first, second object) {
	first = append(first, w.keys...)
	first = first.with("bootcmd", w.bootcmd).with("groups", w.groups)
	// Silence keeps the image's own default user: only a configuration that names users says who has an account.
	first = first.with("users", w.withDefault(w.users))
	first = first.with("write_files", w.files)
	if w.prelude() == nil {
		return first.with("runcmd", append(append(list{}, w.steps...), w.after...)), nil
	}
	return first.with("runcmd", w.steps), object{}.with("runcmd", w.after)
}

func (w *render) prelude() *machineconfig.Passthrough {
	if w.c.Activation == nil {
		return nil
	}
	return w.c.Activation.Prelude
}

// assemble puts the parts together in the order in which cloud-init merges them: ours, the profile's own document, the
// bootstrap secret, and what comes after the bootstrap. See precedence.go.
func (w *render) assemble(document *part) []byte {
	first, second := w.ours()
	prelude := w.prelude()
	if document == nil && prelude == nil {
		return append([]byte(header), block(first)...)
	}
	var parts []part
	own := func(name string, how list, keys object) {
		body := block(append(object{{"merge_how", how}}, keys...))
		parts = append(parts, part{contentType: mimeType(false), name: name, body: header + ascii(string(body))})
	}
	if document == nil {
		own("slipway.yaml", mergeOurs, first)
	} else {
		before, last := w.aroundDocument(first)
		own("slipway.yaml", mergeOurs, before)
		document.merge = mergeDocument
		parts = append(parts, *document)
		if len(last) > 0 {
			own("slipway-last.yaml", mergeLast, last)
		}
	}
	if prelude != nil {
		parts = append(parts, part{contentType: mimeType(prelude.Jinja), name: "bootstrap.yaml", merge: mergeHeader, body: string(prelude.Data)})
	}
	if len(second) > 0 {
		own("slipway-after.yaml", mergeOurs, second)
	}
	return multipart(parts)
}

// part is one part of a multipart message.
type part struct {
	contentType string
	name        string
	merge       string
	body        string
}

func mimeType(jinja bool) string {
	if jinja {
		return "text/jinja2"
	}
	return "text/cloud-config"
}

// multipart writes a MIME message. The boundary is a digest of the parts, so that it is the same every time and is in
// none of them.
func multipart(parts []part) []byte {
	sum := sha256.New()
	for _, p := range parts {
		sum.Write([]byte(p.contentType + "\x00" + p.body + "\x00"))
	}
	boundary := "slipway-" + hex.EncodeToString(sum.Sum(nil))
	var b strings.Builder
	b.WriteString("MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"" + boundary + "\"\n\n")
	for _, p := range parts {
		encoding, body := transfer(p.body)
		b.WriteString("--" + boundary + "\nContent-Type: " + p.contentType + "; charset=\"utf-8\"\nContent-Transfer-Encoding: " + encoding + "\n")
		b.WriteString("Content-Disposition: attachment; filename=\"" + p.name + "\"\n")
		if p.merge != "" {
			b.WriteString("X-Merge-Type: " + p.merge + "\n")
		}
		b.WriteString("\n" + strings.TrimRight(body, "\n") + "\n\n")
	}
	b.WriteString("--" + boundary + "--\n")
	return []byte(b.String())
}

// transfer returns a part's body so that cloud-init gets it back as it is: it reads the message as characters and its
// parts as bytes, so that é in the open becomes one byte of Latin-1 (user_data.convert_string, 22.4 to 25.1).
func transfer(body string) (encoding, text string) {
	if refs := late.References([]byte(body)); len(refs) == 1 && strings.TrimSpace(body) == late.Marker(refs[0]) {
		return "base64", late.MarkerIn(refs[0], late.Base64)
	}
	if isASCII(body) || late.HasMarker(body) {
		return "7bit", body
	}
	var b strings.Builder
	for line := range slices.Chunk([]byte(body), 57) {
		b.WriteString(base64.StdEncoding.EncodeToString(line) + "\n")
	}
	return "base64", b.String()
}
