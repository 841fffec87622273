package inspect

import (
	"net"
	"path"
	"regexp"
	"strings"
)

var pciAddress = regexp.MustCompile(`^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)

func isPCIAddress(s string) bool { return pciAddress.MatchString(s) }

func lastElement(p string) string { return path.Base(p) }

func parent(p string) string { return path.Dir(p) }

func trim0x(s string) string { return strings.TrimPrefix(s, "0x") }

// addresses returns the IP addresses of a port of this machine; of a recorded tree there are none.
func (s *Source) addresses(port string) (texts []string) {
	if s.Root != "/" {
		return nil
	}
	i, err := net.InterfaceByName(port)
	if err != nil {
		return nil
	}
	all, err := i.Addrs()
	if err != nil {
		return nil
	}
	for _, a := range all[:min(len(all), 32)] {
		texts = append(texts, a.String())
	}
	return texts
}
