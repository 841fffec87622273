package cloudinit

import (
	"regexp"
	"strings"
)

// kind is a form of user data, as cloud-init tells it by the first characters.
type kind struct {
	start string // in small letters
	about string
	hint  string // the way around, "" for what is accepted
}

// kinds are all forms in the order in which cloud-init looks for them: a longer start goes first
// (handlers.type_from_starts_with, 22.4 to 25.1).
var kinds = []kind{
	{"#cloud-config-archive", "a cloud-config archive", "write its parts as one #cloud-config, and its scripts under runcmd"},
	{"#cloud-config-jsonp", "a JSON patch of a cloud-config", "write what the patch makes of it as one #cloud-config"},
	{"## template: jinja", "", ""},
	{"#cloud-boothook", "a boothook", "write its commands under bootcmd of a #cloud-config"},
	{"#include-once", "a list of URLs", "write what is at the URLs as one #cloud-config: nobody checks what a machine fetches by itself"},
	{"#part-handler", "a part handler", "put the handler into the image, or write what it would do under runcmd of a #cloud-config"},
	{"#cloud-config", "", ""},
	{"#upstart-job", "a job of upstart", "write a unit of systemd in a layer"},
	{"#include", "a list of URLs", "write what is at the URLs as one #cloud-config: nobody checks what a machine fetches by itself"},
	{"#!", "a script", "write its lines under runcmd of a #cloud-config, or as a command in a layer"},
	{"\x1f\x8b", "compressed with gzip", "unpack it first: gunzip FILE; Slipway compresses nothing and needs no limit of a cloud"},
}

var mimeRE = regexp.MustCompile(`(?i)^(mime-version|content-type|from)\s*:`)

const needsHeader = "make #cloud-config the first line, or the second after ## template: jinja"

// split takes the blank lines off the start of a document, as cloud-init does. It returns what follows, the number of
// its first line, and what is wrong with it, "" for nothing.
func split(text string) (body string, line int, wrong, hint string) {
	body = strings.TrimLeft(text, " \t\r\n\v\f\u0085\u00a0")
	line = 1 + strings.Count(text[:len(text)-len(body)], "\n")
	small := strings.ToLower(body[:min(len(body), 64)])
	for _, k := range kinds {
		if !strings.HasPrefix(small, k.start) && !strings.HasPrefix(body, k.start) {
			continue
		}
		if k.hint != "" {
			return body, line, "is " + k.about + ", and a profile's document is one #cloud-config", k.hint
		}
		return body, line, "", ""
	}
	if mimeRE.MatchString(body) {
		return body, line, "is a MIME message, and a profile's document is one #cloud-config", "write its parts as one #cloud-config, and its scripts under runcmd"
	}
	return body, line, "does not begin with #cloud-config, so that cloud-init would take it for something else", needsHeader
}
