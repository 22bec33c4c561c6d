#!/usr/bin/env bash
# setup.sh DIR [SUITE]: unpacks Mesa's OpenCL compilers for Adreno and Mali into DIR/root.
#
# Fetches Debian's arm64 packages of Mesa, of its fake DRM devices and of Python, and qemu-user to run
# them; unpacks them without installing, so the host stays as it is (delete DIR to be rid of all). Takes
# half a minute and 1 GB. Needs root (chroot, device nodes), Debian's apt and a mirror that it can reach.
# SUITE: sid by default (Mesa 26.2 when this was written). trixie and trixie-backports do for Adreno only.
# Once DIR is complete, a second call does nothing.
set -euo pipefail

readonly arm_packages="mesa-opencl-icd mesa-drm-shim ocl-icd-libopencl1 python3"
readonly qemu_suite=sid  # 10.1 or newer emulates SME2
readonly needed_mib=1000

fail() {
  echo "setup.sh: $*" >&2
  exit 1
}

[ $# -ge 1 ] && [ $# -le 2 ] || fail "usage: setup.sh DIR [SUITE]"
dir=$(realpath -m "$1")
suite=${2:-sid}

if [ "$(cat "$dir/root/suite" 2>/dev/null)" = "$suite" ]; then
  echo "already there: $dir/root (Mesa $(cat "$dir/root/mesa-version"))"
  exit 0
fi

[ "$(id -u)" = 0 ] || fail "needs root, for chroot and device nodes"
for tool in apt-get dpkg dpkg-deb; do
  command -v "$tool" >/dev/null || fail "$tool not found; this works on Debian only"
done
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[ -e "$keyring" ] || fail "$keyring is missing; apt-get install debian-archive-keyring"
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -v security | head -n 1) || true
[ -n "$mirror" ] || fail "apt knows no Debian mirror; run apt-get update first"
mkdir -p "$dir"
free_mib=$(df --output=avail -m "$dir" | tail -n 1)
[ "$free_mib" -ge "$needed_mib" ] || fail "$dir has $free_mib MiB free, $needed_mib are needed"

# use_apt ARCHITECTURE SUITE: apt commands then work on a private state inside DIR.
use_apt() {
  local state=$dir/apt/$1 name
  mkdir -p "$state/lists/partial" "$state/archives/partial"
  : >"$state/status"
  for name in $(printf '%s\n' "${2%-backports}" "$2" | sort -u); do
    echo "deb [arch=$1 signed-by=$keyring] $mirror $name main"
  done >"$state/sources.list"
  cat >"$state/apt.conf" <<END
Dir::State "$state"; Dir::State::status "$state/status"; Dir::State::lists "$state/lists";
Dir::Cache "$state"; Dir::Cache::archives "$state/archives";
Dir::Etc::sourcelist "$state/sources.list"; Dir::Etc::sourceparts "/dev/null";
APT::Architecture "$1"; APT::Architectures { "$1"; }; APT::Sandbox::User "root";
APT::Install-Recommends "false"; Acquire::Check-Valid-Until "false";
END
  export APT_CONFIG=$state/apt.conf
  apt-get -qq update || fail "cannot read $2 for $1 from $mirror"
}

rm -rf "$dir/apt" "$dir/root" "$dir/qemu"
root=$dir/root
mkdir -p "$root/usr"

host=$(dpkg --print-architecture)
use_apt "$host" "$qemu_suite"
(cd "$dir/apt/$host" && apt-get -qq download qemu-user && dpkg-deb -x qemu-user_*.deb "$dir/qemu") ||
  fail "cannot fetch qemu-user from $qemu_suite"

use_apt arm64 "$suite"
# shellcheck disable=SC2086  # a list of words
apt-get -qq install -y --download-only -t "$suite" $arm_packages >/dev/null ||
  fail "cannot fetch $arm_packages for arm64 from $suite"

for name in bin lib sbin; do
  mkdir -p "$root/usr/$name"
  ln -s "usr/$name" "$root/$name"
done
for package in "$dir"/apt/arm64/archives/*.deb; do
  dpkg-deb -x "$package" "$root"
done
mkdir -p "$root"/{proc,dev,tmp,root}
cp "$dir/qemu/usr/bin/qemu-aarch64" "$root/usr/bin/"
for name in null zero urandom; do
  cp -a "/dev/$name" "$root/dev/"
done

for shim in freedreno panfrost; do
  [ -e "$root/usr/lib/aarch64-linux-gnu/lib${shim}_noop_drm_shim.so" ] ||
    fail "mesa-drm-shim of $suite has no $shim device"
done
dpkg-deb -f "$dir"/apt/arm64/archives/mesa-opencl-icd_*.deb Version >"$root/mesa-version"
rm -rf "$dir/apt" "$dir/qemu"
echo "$suite" >"$root/suite"
echo "ready: $root (Mesa $(cat "$root/mesa-version"))"
