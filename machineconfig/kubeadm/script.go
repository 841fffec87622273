package kubeadm

import (
	"fmt"
	"strings"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
)

// script is what the machine runs. It can be run again at any time: what a try has left behind, even one that ended
// with the power, is reset before the next, and everything that kubeadm takes or that reset deletes is copied from our
// folder again.
func (p *plan) script() string {
	verb := "join"
	if p.role == machineconfig.Init {
		verb = "init"
	}
	command := "kubeadm " + verb + " --config " + configPath
	if p.role == machineconfig.Init {
		command += " --skip-token-print --skip-certificate-key-print"
		if p.target.CertificateKey != "" {
			command += " --upload-certs"
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, scriptHead, p.node.Name, verb, folder, late.ShellWord(p.criSocket()), p.o.tries)
	b.WriteString("prepare() {\n")
	b.WriteString(p.prepare())
	b.WriteString("}\n\n")
	if p.startsAsSuperAdmin() {
		fmt.Fprintf(&b, scriptSettle, superAdminConf, adminConf)
	} else {
		b.WriteString("settle() {\n  :\n}\n\n")
	}
	fmt.Fprintf(&b, scriptTail, command)
	return b.String()
}

// prepare puts files where kubeadm looks for them.
func (p *plan) prepare() string {
	var b strings.Builder
	if p.shipsPKI() {
		for _, name := range PKIFiles() {
			mode := "0600"
			if strings.HasSuffix(name, ".crt") || strings.HasSuffix(name, ".pub") {
				mode = "0644"
			}
			fmt.Fprintf(&b, "  install -D -m %s \"$folder/pki/%s\" /etc/kubernetes/pki/%[2]s\n", mode, pkiPath(name))
		}
	}
	if p.hasVIP() {
		b.WriteString("  place \"$folder/kube-vip.yaml\"\n")
	}
	if b.Len() == 0 {
		return "  :\n"
	}
	return b.String()
}

const (
	scriptHead = `#!/bin/bash
# Makes %[1]s a node: kubeadm %[2]s. Safe to run again.
set -euo pipefail
export PATH="$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/bin"
folder=%[3]s
socket=%[4]s
tries=%[5]d

# A static pod is moved into its folder in one step, so that the kubelet never sees half of it.
place() {
  install -D -m 0600 "$1" /etc/kubernetes/manifests/.slipway-new
  mv /etc/kubernetes/manifests/.slipway-new "/etc/kubernetes/manifests/$(basename "$1")"
}

`
	scriptSettle = `# The virtual address starts with super-admin.conf, because admin.conf may do nothing before the cluster is made.
settle() {
  sed -i 's#path: %[1]s$#path: %[2]s#' "$folder/kube-vip.yaml"
  place "$folder/kube-vip.yaml"
}

`
	scriptTail = `if [ -e "$folder/joined" ]; then
  exit 0
fi
# Where these were written on this boot, nobody has read them yet.
modprobe -a br_netfilter overlay || true
sysctl -q --system || true
systemctl daemon-reload
systemctl enable kubelet.service || true
for ((try = 1; ; try++)); do
  if [ -e "$folder/tried" ]; then
    kubeadm reset --force --cri-socket "$socket" || true
  fi
  touch "$folder/tried"
  prepare
  if %[1]s; then
    break
  fi
  if ((try >= tries)); then
    echo "kubeadm gave up after $try tries" >&2
    exit 1
  fi
  sleep $((try * 20))
done
settle
touch "$folder/joined"
rm -f "$folder/tried"
`
)
