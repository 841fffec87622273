#!/bin/sh
# generate.sh          writes what controller-gen makes of the kinds: deep copies, CRDs, roles
# generate.sh check    says what in the tree is not what it would write, and fails
set -eu
cd "$(dirname "$0")/.."
mkdir -p build
(cd tools && CGO_ENABLED=0 go build -o ../build/ sigs.k8s.io/controller-tools/cmd/controller-gen)
gen=build/controller-gen
made='kubernetes/v1alpha1/zz_generated.deepcopy.go kubernetes/infra/v1alpha1/zz_generated.deepcopy.go kubernetes/manifests/crds
	kubernetes/manifests/rbac/standalone_role.yaml kubernetes/manifests/rbac/capi_role.yaml'

write() {
	rm -f kubernetes/manifests/crds/*.yaml
	$gen object crd:maxDescLen=400 paths=./kubernetes/v1alpha1/... paths=./kubernetes/infra/v1alpha1/... output:crd:dir=kubernetes/manifests/crds
	$gen rbac:roleName=slipway-standalone paths=./kubernetes/standalone output:rbac:stdout >kubernetes/manifests/rbac/standalone_role.yaml
	$gen rbac:roleName=slipway-capi paths=./kubernetes/clusterapi output:rbac:stdout >kubernetes/manifests/rbac/capi_role.yaml
}

case "${1:-}" in
'') write ;;
check)
	was=$(mktemp -d)
	trap 'rm -rf "$was"' EXIT
	tar cf "$was/made.tar" $made
	write
	mkdir "$was/old" && tar xf "$was/made.tar" -C "$was/old"
	stale=
	for f in $made; do
		diff -r "$was/old/$f" "$f" >&2 || stale="$stale $f"
	done
	[ -z "$stale" ] || { tar xf "$was/made.tar"; echo "stale:$stale; run: make generate" >&2; exit 1; } ;;
*) sed -n '2,3p' "$0" >&2; exit 2 ;;
esac
