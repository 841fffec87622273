#!/bin/sh
# parts.sh build NAME...   other people's programs that judge ours, built from their Go modules into build/parts/NAME
# parts.sh list            their names, and what each is for
# parts.sh tidy            removes what their builds have compiled, if none runs
#
# Each folder under tools/parts is a module of its own that pins versions by go.sum; nothing of them is linked into
# Slipway. A part is built once and again when its module changes. Its compiled packages, gigabytes, go into a cache of their own,
# because nothing else needs them. All that is made of Kubernetes is one module: the same versions are compiled once.
set -eu
cd "$(dirname "$0")/.."
cache=$PWD/build/parts/.cache

# name                     module    package                                              why
table() {
	cat <<'TABLE'
etcd                     kube      go.etcd.io/etcd/server/v3                            store of the API server
kube-apiserver           kube      k8s.io/kubernetes/cmd/kube-apiserver                 tokens, certificate requests and custom resources meet it
kube-controller-manager  kube      k8s.io/kubernetes/cmd/kube-controller-manager        signs certificate requests, cleans tokens
kubeadm                  kube      k8s.io/kubernetes/cmd/kubeadm                        judges kubeadm configurations
kubectl                  kube      k8s.io/kubernetes/cmd/kubectl                        what users of the custom resources type
ignition                 ignition  github.com/coreos/ignition/v2/internal               Ignition's own engine, newer than Debian's
ignition-validate        ignition  github.com/coreos/ignition/v2/validate               its parser
butane                   ignition  github.com/coreos/ignition/v2/butane/internal        Butane's own command, the peer of make bench
capi-secrets             kube      ./secrets                                            makes bootstrap secrets with Cluster API's own renderers
capi-core                kube      sigs.k8s.io/cluster-api/core                         stock Cluster API
capi-cabpk               kube      sigs.k8s.io/cluster-api/bootstrap/kubeadm            its kubeadm bootstrap provider
capi-kcp                 kube      sigs.k8s.io/cluster-api/controlplane/kubeadm         its kubeadm control plane provider
clusterctl               kube      sigs.k8s.io/cluster-api/cmd/clusterctl               its command line
capi-manifests           kube      -                                                    what its releases put into a cluster
cert-manager-crds        certmanager -                                                  kinds that these use
capi-inmemory            kube      ./inmemory                                           its workload cluster that is kept in memory
capi-validators          kube      ./validators                                         its checks of owners, finalizers and versions
oidc-provider            oidc      ./provider                                           a real OpenID provider for single sign-on
TABLE
}

build() {
	line=$(table | awk -v n="$1" '$1 == n')
	[ -n "$line" ] || { echo "parts.sh: no part is called $1" >&2; exit 2; }
	# shellcheck disable=SC2086
	set -- $line
	out=$PWD/build/parts/$1
	# of the module and this row; whoever changes how things are built below changes the number
	stamp=$( (find "tools/parts/$2" -type f | LC_ALL=C sort | xargs cat; echo "$line 1") | sha256sum)
	mkdir -p build/parts
	exec 9>"$out.lock" && flock 9 # two stages that need a part at once: one builds it
	[ -x "$out" ] && [ "$(cat "$out.stamp" 2>/dev/null)" = "$stamp" ] && return
	flags='-s -w'
	cgo=0
	case $1 in
	kube*) # the API server refuses to start without a version
		v=$(sed -n 's/^\tk8s.io\/kubernetes v\([0-9.]*\).*/\1/p' tools/parts/kube/go.mod)
		for f in "gitVersion=v$v" gitMajor=1 "gitMinor=$(echo "$v" | cut -d. -f2)"; do
			flags="$flags -X k8s.io/component-base/version.$f"
		done ;;
	ignition | ignition-validate | butane) # they want to be told their version
		v=$(sed -n 's/^\tgithub.com\/coreos\/ignition\/v2 v\([0-9.]*\).*/\1/p' tools/parts/ignition/go.mod)
		for p in internal butane/internal; do
			flags="$flags -X github.com/coreos/ignition/v2/$p/version.Raw=$v"
		done
		cgo=1 ;;
	esac
	echo "builds $1 from its Go module, once ($(echo "$line" | awk '{ $1 = $2 = $3 = ""; sub(/^ +/, ""); print }'))" >&2
	if [ "$1" = cert-manager-crds ]; then # text: its own
		dir=$(cd "tools/parts/$2" && go mod download github.com/cert-manager/cert-manager && go list -m -f '{{.Dir}}' github.com/cert-manager/cert-manager)
		for f in "$dir"/deploy/crds/*.yaml; do
			echo ---
			cat "$f"
		done >"$out.new"
		chmod +x "$out.new" && mv "$out.new" "$out"
	elif [ "$3" = - ]; then # text: kustomize writes it
		[ -x build/parts/kubectl ] || tools/parts.sh build kubectl
		dir=$(cd "tools/parts/$2" && go mod download sigs.k8s.io/cluster-api && go list -m -f '{{.Dir}}' sigs.k8s.io/cluster-api)
		for p in core bootstrap/kubeadm controlplane/kubeadm; do
			echo "--- # $p"
			build/parts/kubectl kustomize "$dir/$p/config/default"
		done >"$out.new"
		chmod +x "$out.new" && mv "$out.new" "$out"
	else
		(cd "tools/parts/$2" && GOCACHE=$cache GOFLAGS='-trimpath -gcflags=all=-dwarf=false' GOGC=200 CGO_ENABLED=$cgo go build -ldflags "$flags" -o "$out" "$3")
	fi
	echo "$stamp" >"$out.stamp"
}

case "${1:-list}" in
list) table ;;
build)
	shift
	mkdir -p "$cache"
	exec 8>"$cache.lock" && flock -s 8
	for name; do build "$name"; done ;;
tidy)
	mkdir -p "$cache"
	exec 8>"$cache.lock" && flock -n 8 && rm -rf "$cache" || true ;;
*) sed -n '2,4p' "$0" >&2; exit 2 ;;
esac
