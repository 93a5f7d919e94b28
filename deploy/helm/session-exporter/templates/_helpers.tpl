{{- define "session-exporter.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "session-exporter.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- $name := include "session-exporter.name" . }}
{{- if contains $name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}
{{- end }}

{{- define "session-exporter.labels" -}}
app.kubernetes.io/name: {{ include "session-exporter.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* Takes a list: the context, and the component. */}}
{{- define "session-exporter.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ include "session-exporter.name" $root }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "session-exporter.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}{{ default (include "session-exporter.fullname" .) .Values.serviceAccount.name }}{{ else }}{{ default "default" .Values.serviceAccount.name }}{{ end }}
{{- end }}

{{- define "session-exporter.image" -}}
{{- if .Values.image.tag }}{{ .Values.image.repository }}:{{ .Values.image.tag }}{{ else }}{{ .Values.image.repository }}{{ end }}
{{- end }}

{{/* Takes a list: seconds of lingering, seconds of draining. The kubelet kills what is left after this time. */}}
{{- define "session-exporter.graceSeconds" -}}
{{- add (ceil (index . 0) | int) (ceil (index . 1) | int) 10 }}
{{- end }}

{{- define "session-exporter.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
privileged: false
{{- end }}

{{/* Variables of an exporter; takes a dictionary: values, copilotHome, lingerSeconds, prefix (of its files and volumes). */}}
{{- define "session-exporter.env" -}}
- name: EXPORTER_COPILOT_HOME
  value: {{ .copilotHome | quote }}
- name: EXPORTER_STATE_DIR
  value: /var/lib/exporter/state
- name: XDG_CACHE_HOME
  value: /var/lib/exporter/cache
- name: EXPORTER_LOG_FORMAT
  value: {{ .values.exporter.logFormat | quote }}
- name: EXPORTER_LOG_LEVEL
  value: {{ .values.exporter.logLevel | quote }}
- name: EXPORTER_LINGER_SECONDS
  value: {{ .lingerSeconds | quote }}
- name: EXPORTER_DRAIN_SECONDS
  value: {{ .values.exporter.drainSeconds | quote }}
{{- with .values.metrics }}
{{- if .enabled }}
- name: EXPORTER_METRICS__LISTEN
  value: "0.0.0.0:{{ .port }}"
{{- if .tokenSecret.name }}
- name: EXPORTER_METRICS__TOKEN_FILE
  value: /etc/exporter/secrets/metrics-token
{{- else if .allowOpen }}
- name: EXPORTER_METRICS__ALLOW_OPEN
  value: "true"
{{- else }}
{{- fail "metrics: name a tokenSecret, set allowOpen, or set enabled to false" }}
{{- end }}
{{- end }}
{{- end }}
{{- with .values.exporter.env }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "session-exporter.probes" -}}
startupProbe:
  httpGet: {path: /healthz, port: metrics}
  periodSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /healthz, port: metrics}
  periodSeconds: 30
  timeoutSeconds: 10
  failureThreshold: 4
readinessProbe:
  httpGet: {path: /readyz, port: metrics}
  periodSeconds: 15
  timeoutSeconds: 10
{{- end }}

{{/* Sources of the projected volume with secrets; takes the values. */}}
{{- define "session-exporter.secretSources" -}}
{{- range .exporter.secrets }}
- secret:
    name: {{ .name }}
    {{- with .items }}
    items: {{- toYaml . | nindent 6 }}
    {{- end }}
{{- end }}
{{- if and .metrics.enabled .metrics.tokenSecret.name }}
- secret:
    name: {{ .metrics.tokenSecret.name }}
    items: [{key: {{ .metrics.tokenSecret.key }}, path: metrics-token}]
{{- end }}
{{- end }}

{{/* The same, or an empty list; takes a list: the values, and how far they are indented. */}}
{{- define "session-exporter.sources" -}}
{{- $sources := include "session-exporter.secretSources" (index . 0) | trim }}
{{- if $sources }}{{ $sources | nindent (index . 1) }}{{ else }} []{{ end }}
{{- end }}
