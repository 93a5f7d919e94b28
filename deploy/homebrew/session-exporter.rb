# Formula of Homebrew. NOT RUN BY US: neither macOS nor Homebrew is in our CI. Ruby's parser is what a test lets read it.
#
# The program needs compiled packages from PyPI, so they come as wheels, by the hashes of deploy/packages/requirements.lock,
# into an environment of its own. Before it goes into a tap: put in the address of a released source archive and its hash.
class SessionExporter < Formula
  desc "Follow GitHub Copilot CLI sessions and deliver them without secrets"
  homepage "https://example.com/session-exporter"
  url "https://example.com/session-exporter/session_exporter-0.1.0.tar.gz"
  sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  license "Apache-2.0"

  depends_on "python@3.13"

  def install
    python = Formula["python@3.13"].opt_bin/"python3.13"
    system python, "-m", "venv", libexec
    pip = [libexec/"bin/python", "-m", "pip", "--disable-pip-version-check", "install", "--no-deps"]
    system(*pip, "--only-binary", ":all:", "--require-hashes", "-r", "deploy/packages/requirements.lock")
    system(*pip, ".")
    bin.install_symlink libexec/"bin/exporter"
    man1.install "deploy/packages/share/man/man1/exporter.1"
    bash_completion.install "deploy/packages/share/bash-completion/completions/exporter"
    zsh_completion.install "deploy/packages/share/zsh/site-functions/_exporter"
    fish_completion.install "deploy/packages/share/fish/vendor_completions.d/exporter.fish"
  end

  service do
    run [opt_bin/"exporter", "run"]
    keep_alive successful_exit: false
    error_log_path var/"log/session-exporter.log"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/exporter --version")
    assert_match "[mission_control]", shell_output("#{bin}/exporter config example")
  end
end
