package installer

import (
	"fmt"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
)

// Program is what a system has to ask a web server.
type Program string

// The programs. Debian's installer has only the wget of busybox. Its time limit -T is an option of its build.
const (
	Curl Program = "curl -fsS --connect-timeout 5 --max-time 60"
	Wget Program = "wget $t -q"
)

// How often each instance is asked: by the installer, for a minute at least, and by the system at its first boot.
const (
	Tries      = 12
	TriesLater = 40
)

// ask is a command of a shell that asks for a URL of the boot session, and stores the answer in file. urls is one with its marker, which
// may become several: the machine asks one instance after the other, because the one of this boot may be gone for good.
func (p Program) ask(urls, query, file string, tries int) string {
	// Around curl is YAML in most cases. The marker then takes the encoding of that, because a value cannot be encoded for YAML and for a
	// shell at once. URLs have nothing that a shell would take for its own.
	word, limit, into := "'"+urls+"'", "", "-o"
	if p == Wget {
		word, limit, into = late.ShellWord(urls), `t=; case "$(wget --help 2>&1)" in *"-T SEC"*) t="-T 60";; esac; `, "-O"
	}
	once := fmt.Sprintf(`for u in $urls; do %s %s %s "$u%s" && exit 0; done`, p, into, file, query)
	return fmt.Sprintf(`( urls=%s; %sn=0; while [ $n -lt %d ]; do %s; n=$((n+1)); sleep 5; done; exit 1 )`, word, limit, tries, once)
}

// Report is the command with which the machine reports a step of its boot, and what went wrong there. It is "" if it does not report.
func (p Program) Report(c *machineconfig.Config, query string, tries int) string {
	if c.PhoneHome.URL == "" || c.PhoneHome.Enabled != nil && !*c.PhoneHome.Enabled {
		return ""
	}
	return p.ask(c.PhoneHome.URL, "?step="+query, "/dev/null", tries)
}

// Fetch is the command that fetches another document of the rendering.
func (p Program) Fetch(document, file string) string {
	return p.ask(late.Marker("session://config/"+document), "", file, Tries)
}
