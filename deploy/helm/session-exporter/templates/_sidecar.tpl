{{/*
An exporter beside the CLI, in a pod of your own chart that has this one as a dependency. Takes a dictionary:

  context       the context of your chart ($)
  values        values of this chart, such as (index .Values "session-exporter")
  homeVolume    name of the volume of the pod that holds the CLI's home
  copilotHome   directory of the CLI, as the exporter sees it: below /home/agent, where that volume is mounted
  subPath       directory of that volume that is mounted (default: all of it)
  uid           user id of the CLI, whose files only that user can read
  lingerSeconds default 30

  initContainers:
    {{- include "session-exporter.sidecar" $given | nindent 4 }}
  volumes:
    {{- include "session-exporter.sidecarVolumes" $given | nindent 4 }}
  terminationGracePeriodSeconds: {{ include "session-exporter.sidecarGraceSeconds" $given }}

It is a native sidecar (1.29): it starts before the CLI, and gets its SIGTERM when the CLI has ended.
*/}}
{{- define "session-exporter.sidecar" -}}
{{- $values := .values -}}
- name: session-exporter
  image: {{ include "session-exporter.image" (dict "Values" $values) | quote }}
  imagePullPolicy: {{ $values.image.pullPolicy }}
  restartPolicy: Always
  args: [run, --config, /etc/exporter/settings/exporter.toml]
  env:
    {{- include "session-exporter.env" (dict "values" $values "copilotHome" .copilotHome "lingerSeconds" (include "session-exporter.sidecarLinger" .)) | nindent 4 }}
  {{- if $values.metrics.enabled }}
  ports:
    - {name: metrics, containerPort: {{ $values.metrics.port }}, protocol: TCP}
  {{- include "session-exporter.probes" . | nindent 2 }}
  {{- end }}
  resources: {{- toYaml $values.exporter.resources | nindent 4 }}
  securityContext:
    {{- include "session-exporter.containerSecurity" . | nindent 4 }}
    runAsNonRoot: true
    runAsUser: {{ required "session-exporter.sidecar needs uid, that of the CLI" .uid }}
    runAsGroup: {{ .gid | default .uid }}
    capabilities: {drop: [ALL]}
    seccompProfile: {type: RuntimeDefault}
  volumeMounts:
    - name: {{ required "session-exporter.sidecar needs homeVolume" .homeVolume }}
      mountPath: /home/agent
      readOnly: true
      {{- with .subPath }}
      subPath: {{ . }}
      {{- end }}
    - {name: session-exporter-state, mountPath: /var/lib/exporter}
    - {name: session-exporter-tmp, mountPath: /tmp}
    - {name: session-exporter-settings, mountPath: /etc/exporter/settings, readOnly: true}
    - {name: session-exporter-secrets, mountPath: /etc/exporter/secrets, readOnly: true}
{{- end }}

{{- define "session-exporter.sidecarVolumes" -}}
- name: session-exporter-state
  emptyDir: {sizeLimit: 1Gi}
- name: session-exporter-tmp
  emptyDir: {sizeLimit: 64Mi}
- name: session-exporter-settings
  configMap: {name: {{ include "session-exporter.settingsName" . }}}
- name: session-exporter-secrets
  projected:
    defaultMode: 0440
    sources: {{- include "session-exporter.sources" (list .values 6) }}
{{- end }}

{{/* The ConfigMap with the settings is part of this chart, under the name that its release gives it. */}}
{{- define "session-exporter.settingsName" -}}
{{- $chart := dict "Name" "session-exporter" -}}
{{ include "session-exporter.fullname" (dict "Values" .values "Release" .context.Release "Chart" $chart) }}
{{- end }}

{{- define "session-exporter.sidecarLinger" -}}
{{- if hasKey . "lingerSeconds" }}{{ .lingerSeconds }}{{ else }}30{{ end }}
{{- end }}

{{- define "session-exporter.sidecarGraceSeconds" -}}
{{- include "session-exporter.graceSeconds" (list (include "session-exporter.sidecarLinger" . | float64) .values.exporter.drainSeconds) }}
{{- end }}
