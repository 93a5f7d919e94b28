"""Rules that tell a secret by what stands around it.

assignments, pairs, layouts, blocks, positions, passphrases    a name and its value, side by side or apart
addresses, headers, flags, commands                            URLs, HTTP, options, arguments
credential_files, secret_manifests, local_secrets              files that hold credentials
private_keys, encoded_keys, web_tokens                         keys and tokens with a structure
"""
